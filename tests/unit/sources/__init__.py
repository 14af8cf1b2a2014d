"""Readers of sources, without a server."""
