"""A target on PostgreSQL."""
