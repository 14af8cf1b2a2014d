"""Values of the binary log, of each type and character set."""
