"""Scenarios, their faults, workloads and benchmarks."""
