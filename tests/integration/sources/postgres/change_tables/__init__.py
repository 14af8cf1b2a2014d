"""Change tables of PostgreSQL in place of its log."""
