"""The loop that maps segments and commits batches."""
