"""Chunks of MySQL's and MariaDB's tables."""
