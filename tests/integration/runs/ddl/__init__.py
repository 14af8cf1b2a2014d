"""Whole runs: killed, stopped, refused, started again, into each kind of target."""
