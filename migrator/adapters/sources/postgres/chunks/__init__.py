"""Chunks of PostgreSQL's tables."""
