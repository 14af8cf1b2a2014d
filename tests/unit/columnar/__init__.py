"""Pure functions over Arrow tables."""
