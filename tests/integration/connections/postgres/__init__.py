"""Sessions on PostgreSQL, whatever is set around them."""
