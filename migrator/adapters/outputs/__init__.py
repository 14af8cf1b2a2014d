"""Where mapped changes go besides a target."""
