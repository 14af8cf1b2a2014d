"""Fences of a cut-over: one folder an engine, ``shared`` for the order in which all of them go."""
