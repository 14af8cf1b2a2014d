"""Connections that servers need not answer."""
