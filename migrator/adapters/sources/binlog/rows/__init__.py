"""Rows of a binlog's events."""
