"""``migrator status``: its lines, its document, its command."""
