"""The work of commands other than a run: try, repair, ask for dumps, stream events."""
