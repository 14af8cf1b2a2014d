"""Spark sessions, and jobs that run a mapping."""
