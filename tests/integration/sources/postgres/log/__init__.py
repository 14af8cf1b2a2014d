"""The log of PostgreSQL: slot, stream, cuts, standbys."""
