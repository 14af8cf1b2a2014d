"""Other outputs of change events."""
