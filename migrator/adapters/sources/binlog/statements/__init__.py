"""Statements in a binlog, read as their clients wrote them."""
