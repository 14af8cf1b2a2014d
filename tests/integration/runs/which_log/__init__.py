"""Whole runs as processes that are killed, and what they meet when they come back."""
