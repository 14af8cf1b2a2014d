"""Transactions of a binlog, whole and in order."""
