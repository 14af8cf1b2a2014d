"""What commands do besides a run: try, repair, ask for dumps, stream events."""
