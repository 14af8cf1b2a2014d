"""What is looked at in PostgreSQL before a run."""
