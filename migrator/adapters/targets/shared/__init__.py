"""Checks of mapped rows: code that the SQL targets share besides the mirror."""
