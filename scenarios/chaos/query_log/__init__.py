"""Clients that do again what a captured query log says that an application did."""
