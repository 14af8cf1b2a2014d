"""Frozen values that travel between the stations. Standard library only, no behaviour beyond the values' own."""
