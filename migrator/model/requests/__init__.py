"""Requests of operators to a run: dumps, and the predicates that choose their rows."""
