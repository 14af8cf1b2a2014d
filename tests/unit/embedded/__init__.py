"""Servers and programs that are started here."""
