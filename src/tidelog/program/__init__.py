"""Checked programs: types, names, safety, strata, and what functions mean.

`check` is the way in: it lists the passes in order.
"""
