"""Places of a binary log: servers that were put back or promoted."""
