"""Mappings that were changed between two runs."""
