"""Column types of MySQL and what becomes of them."""

from __future__ import annotations

from functools import partial

from migrator.adapters.sources.binlog.rows import column_types

logical_type = partial(column_types.logical_type, binaries=frozenset({"vector", "geomcollection"}))
"""The logical type of a MySQL column; None when we can't read it from the log."""
