"""Settings of a project: read, checked, and handed on as values."""
