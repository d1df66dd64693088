"""A program with its facts and answers, for Python: databases, transactions, answers, reports."""
