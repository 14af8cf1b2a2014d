"""Targets whose rows are made of several tables: grains, links, keys."""
