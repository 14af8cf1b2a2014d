"""Chunks of PostgreSQL, and their races with the log."""
