"""Chunk reads by tasks on Spark's executors, behind the same port as the driver's own."""
