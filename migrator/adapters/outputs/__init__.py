"""Outputs of mapped changes besides a target."""
