"""The core of capture."""
