"""Checks of a PostgreSQL target before a run."""
