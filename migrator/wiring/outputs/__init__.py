"""Outputs of change events, chosen and put together."""
