"""The command that begins a project."""
