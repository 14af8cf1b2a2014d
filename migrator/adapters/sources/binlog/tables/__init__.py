"""Captured tables as a binlog has them: their events, their identity, what stood in their place before."""
