"""The writes of a project's clients, drawn from its schema."""
