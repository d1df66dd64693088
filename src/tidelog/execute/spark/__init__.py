"""The Spark executor: plans lowered to DataFrame operations, on the caller's session or one of our own."""
