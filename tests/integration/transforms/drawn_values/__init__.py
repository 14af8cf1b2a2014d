"""Drawn inputs of the column library."""
