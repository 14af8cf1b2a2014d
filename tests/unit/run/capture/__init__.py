"""Capture's threads."""
