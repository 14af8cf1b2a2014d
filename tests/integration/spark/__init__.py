"""Spark as a process and as a cluster."""
