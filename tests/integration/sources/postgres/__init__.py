"""A source on PostgreSQL: preflight, placement, values; log, chunks and tables are in the rooms."""
