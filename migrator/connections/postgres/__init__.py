"""PostgreSQL, as sources, targets and the judge connect to it."""
