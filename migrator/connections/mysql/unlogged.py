"""Columns that a MySQL or MariaDB server leaves out of its log."""

from __future__ import annotations

NONE_GENERATED = (
    "(VERSION() LIKE '%%MariaDB%%' AND CAST(SUBSTRING_INDEX(VERSION(), '.', 1) AS UNSIGNED) >= 11)"
)
"""A condition that a server logs no generated column, for statements with parameters.

MariaDB 10.11 logs stored columns like others, 11.8 logs an UPDATE without them, whatever ``binlog_row_image`` is.
"""
UNLOGGED = f"(EXTRA LIKE '%%VIRTUAL GENERATED%%' OR EXTRA LIKE '%%STORED GENERATED%%' AND {NONE_GENERATED})"
"""A condition on a row of information_schema.COLUMNS, likewise."""
