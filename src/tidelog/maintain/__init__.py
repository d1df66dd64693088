"""Algorithms that bring answers up to date, one file each, over the executor protocol."""
