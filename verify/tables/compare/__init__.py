"""Two frames, compared value by value."""
