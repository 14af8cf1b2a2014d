"""The dual read."""
