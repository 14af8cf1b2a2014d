"""Old and new schemas of the benchmark whose shape is what matters: many tables, joined tables."""
