"""What is read from migration.toml."""
