"""Stores of captured segments."""
