"""Registers: every write of a row is a value that nobody else writes, rising per client."""
