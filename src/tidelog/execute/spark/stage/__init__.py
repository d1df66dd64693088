"""A fixpoint as one Spark stage: tasks run the kernels of the local engine; Spark sees rows in, rows out."""
