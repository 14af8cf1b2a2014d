"""Mappings and what they are said to do, without Spark."""
