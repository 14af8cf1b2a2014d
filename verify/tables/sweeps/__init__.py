"""Walks through a table or its grains, chunk by chunk."""
