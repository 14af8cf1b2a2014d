"""The judge of rows that are made of several others."""
