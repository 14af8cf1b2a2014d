"""The log and the change tables of PostgreSQL."""
