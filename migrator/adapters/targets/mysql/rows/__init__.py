"""Rows on their way into a table of MySQL and MariaDB: encoded, staged, merged."""
