"""One target over four source tables: what a change costs that reaches it through foreign keys."""
