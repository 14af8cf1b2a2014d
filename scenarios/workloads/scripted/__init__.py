"""Scripted: the registers, mapped by a function in Python, which Spark runs in worker processes."""
