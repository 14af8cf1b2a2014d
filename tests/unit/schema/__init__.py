"""The tables that the tool makes, and those of users."""
