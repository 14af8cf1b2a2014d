"""Targets; their suites run in the integration tests."""
