"""The command that writes change events for other readers."""
