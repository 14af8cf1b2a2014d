"""Reading a source, as all engines must; each engine's own is in the rooms."""
