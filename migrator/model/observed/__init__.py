"""Values of those who watch a migration."""
