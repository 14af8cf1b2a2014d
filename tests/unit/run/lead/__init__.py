"""A leader's start, lease and upkeep."""
