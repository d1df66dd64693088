"""DataFrames of Spark as facts, answers and changes.

A DataFrame that is given is only looked at: its columns have to fit. It is computed once, when the
transaction is committed, and stays in Spark from then on. Facts of a relation that has been given
one are kept there too, whatever they come as; so are answers and changes, until somebody asks
for their rows.
"""
