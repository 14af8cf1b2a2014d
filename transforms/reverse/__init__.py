"""The way back: what of a mapping from old tables to new ones can be turned round, as another mapping."""
