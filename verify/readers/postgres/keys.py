"""Kinds of key columns on PostgreSQL."""

from __future__ import annotations

from migrator.model.table import Column
from verify.readers.chunk_keys import BYTES, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, TIMESTAMPTZ, UUID
from verify.readers.snapshot import TargetColumnText

_TIMES = {"date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ}
_PRINTED = {
    "int2": INTEGER,
    "int4": INTEGER,
    "int8": INTEGER,
    "numeric": NUMBER,
    "uuid": UUID,
    "bytea": BYTES,
    **_TIMES,
}


def source_key(column: Column) -> str | None:
    """The kind of a source's column that is neither a number nor bytes."""
    return _TIMES.get(column.type, TEXT)


def target_key(column: TargetColumnText) -> str | None:
    """The kind of a target's column."""
    return _PRINTED.get(column.base, TEXT)


def agreed_key(source: Column, target: TargetColumnText) -> str | None:
    """The kind of a column that two servers of PostgreSQL order alike, and others may not; None for others."""
    if source.type == "date" and target.base == "date":
        return DATE
    if source.source_type == "uuid" and target.base == "uuid":
        return UUID
    return None
