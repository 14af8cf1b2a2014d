"""The event log's files."""
