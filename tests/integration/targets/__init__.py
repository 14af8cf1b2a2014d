"""Writing a target, as all engines must; each engine's own is in the rooms."""
