"""Differences, their causes, and what mends them."""
