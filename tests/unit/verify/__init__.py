"""The judge of tables."""
