"""Whole migrations of well-known databases."""
