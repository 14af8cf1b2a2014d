"""Writes the generated parts of docs/reference from the code; `make reference` runs it, a test compares."""
