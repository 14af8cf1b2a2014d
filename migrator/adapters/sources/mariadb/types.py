"""Column types of MariaDB and what becomes of them."""

from __future__ import annotations

from functools import partial

from migrator.adapters.sources.binlog.rows import column_types

_ADDRESSES = frozenset({"uuid", "inet4", "inet6"})

logical_type = partial(column_types.logical_type, texts=_ADDRESSES)
"""The logical type of a MariaDB column; None when we can't read it from the log (vector, year(2), ...)."""
