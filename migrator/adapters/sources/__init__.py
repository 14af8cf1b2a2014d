"""Old databases: one folder an engine, and the binlog that two of them share."""
