"""Change events as JSON lines, to a file that is continued or to a stream."""
