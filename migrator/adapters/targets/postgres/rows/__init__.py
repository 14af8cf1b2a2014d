"""Rows on their way into a table of PostgreSQL: encoded, staged, merged."""
