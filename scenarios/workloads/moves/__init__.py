"""Moves: rows take other primary keys, alone and whole ranges at once; the new table has no other unique column."""
