"""Pure functions on Arrow tables that more than one station needs. No I/O, no state."""
