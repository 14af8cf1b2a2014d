"""Tables of engines."""
