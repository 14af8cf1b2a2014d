"""The judge's readers of PostgreSQL."""
