"""`migrator repair` under writers."""
