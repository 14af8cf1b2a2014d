"""The rules of fences that need no server."""
