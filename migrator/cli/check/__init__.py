"""``migrator check``: what it finds, its lines, its document, its command."""
