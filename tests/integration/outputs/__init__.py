"""Outputs of change events beside a real capture."""
