"""The command that repairs a target."""
