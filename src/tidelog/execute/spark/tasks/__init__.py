"""What runs inside Spark's tasks, and needs no Spark: shares of a fixpoint that send each other rows."""
