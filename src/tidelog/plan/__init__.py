"""Plans: a rule read at versions, the order of its joins, and the relational algebra that follows.

`executor` is the seam: what an algorithm can ask of an executor.
"""
