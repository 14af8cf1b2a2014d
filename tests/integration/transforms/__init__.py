"""Mappings and the column library on real Spark."""
