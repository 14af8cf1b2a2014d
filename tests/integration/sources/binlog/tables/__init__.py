"""Tables that change under the log: statements, partitions, cascades, other names."""
