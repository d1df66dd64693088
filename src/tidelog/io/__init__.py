"""Facts in, answers out: text files, Parquet, Arrow, DataFrames and Python rows.

Every reader ends in the same place, a table with exactly the schema of
`program.arrow.arrow_schema`. Each has a fast columnar path, and where that does not
succeed an exact one, value by value, that either finds the values good after all or
says which rows are wrong. The fast path never accepts what the exact one rejects.
"""
