"""Answers kept current on Spark: the tasks of `plan.maintenance` over DataFrames."""
