"""Fences on real servers."""
