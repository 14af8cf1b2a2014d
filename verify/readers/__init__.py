"""The judge's own readers of both sides."""
