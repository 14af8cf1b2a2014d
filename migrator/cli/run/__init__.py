"""The command that runs a migration."""
