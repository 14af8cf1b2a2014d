"""Comparing tables: mapping(source) with the target."""
