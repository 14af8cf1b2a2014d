"""Kinds of key columns on MySQL and MariaDB."""

from __future__ import annotations

import re

from migrator.model.table import Column
from verify.readers.chunk_keys import BYTES, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, TIMESTAMPTZ
from verify.readers.snapshot import TargetColumnText

_PRINTED = {
    "int2": INTEGER,
    "int4": INTEGER,
    "int8": INTEGER,
    "numeric": NUMBER,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "bytea": BYTES,
}
_TEXTS = re.compile(
    r"(tiny|medium|long)?(var)?(char|text)\b|(uuid|inet4|inet6|date|datetime|timestamp|time)\b"
)
_CHARACTERS = re.compile(r"(tiny|medium|long)?(var)?(char|text)\b")


def source_key(column: Column) -> str | None:
    """The kind of a source's column that is neither a number nor bytes; None if rows can't be cut by it."""
    return TEXT if column.type == "string" and _TEXTS.match(column.source_type.lower()) else None


def target_key(column: TargetColumnText) -> str | None:
    """The kind of a target's column; None if rows can't be cut or found by it."""
    native = column.native.lower()
    if _CHARACTERS.match(native):
        return TEXT
    return None if native.startswith("bit") else _PRINTED.get(column.base)


def agreed_key(source: Column, target: TargetColumnText) -> str | None:
    """None: these servers order nothing alike that others may not."""
    return None
