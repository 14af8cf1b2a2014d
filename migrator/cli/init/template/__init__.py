"""The files that ``migrator init`` writes, as they are apart from ``{name}`` and the like."""
