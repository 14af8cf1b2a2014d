"""New databases: one folder an engine, and what they share."""
