"""Faults on real processes, servers and connections, each fired at a named point or after so many row changes."""
