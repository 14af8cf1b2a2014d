"""The contract of fences."""
