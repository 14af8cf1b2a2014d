"""Rounds of a verification under live writes."""
