"""The mirror of joined tables in PostgreSQL."""
