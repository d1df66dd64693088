"""Keeping answers current in process: marks on rows, and the maintenance tasks as kernels.

Beside its rows a relation has a *ledger*: marks, numbers, a map from tuples to row numbers,
and lists of the rows that the running commit has touched (`ledger`). A reading becomes code
for a *cursor* that steps from one rule instance to the next (`assemble`, `cursor`); `sweep`,
`proof` and `steps` are loops over cursors. `keeper` is the executor.
"""
