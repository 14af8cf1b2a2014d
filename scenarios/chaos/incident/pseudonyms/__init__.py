"""Pseudonyms that keep the form of values: pure, keyed by a random key that is written nowhere."""
