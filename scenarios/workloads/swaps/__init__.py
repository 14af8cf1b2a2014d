"""Swaps: rows take each other's primary keys and unique values, or move to free keys, in one transaction."""
