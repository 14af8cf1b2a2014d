"""Hashes of rows that servers compute."""
