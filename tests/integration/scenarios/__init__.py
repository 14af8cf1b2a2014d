"""Scenarios, their recorders and workloads, broken variants, torture."""
