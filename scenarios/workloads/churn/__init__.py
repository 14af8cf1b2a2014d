"""Churn: the same keys deleted and inserted again, also within one transaction."""
