"""Hooks that are commands or URLs."""
