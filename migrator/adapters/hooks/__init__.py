"""Hooks that point an application at a database."""
