"""PostgreSQL's logical log."""
