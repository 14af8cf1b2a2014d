"""Real databases, mapped whole and judged by plain Python."""
