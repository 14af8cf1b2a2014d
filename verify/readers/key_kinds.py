"""The kind of a key column: for keys of one side alone, and for keys whose order both sides agree upon."""

from __future__ import annotations

import re

from migrator.model.table import Column
from verify.readers.chunk_keys import BYTES, INTEGER, NUMBER
from verify.readers.engines import JUDGED
from verify.readers.snapshot import TargetColumnText

_INTEGERS = ("int8", "int16", "int32", "int64")


def agreed_kind(kinds: tuple[str, str], source: Column, target: TargetColumnText) -> str | None:
    """The kind of a key column, if both servers order its values alike. ``kinds``: the engines."""
    whole_target = target.base in ("int2", "int4", "int8") or (
        target.base == "numeric" and re.fullmatch(r"(numeric|decimal)\(\d+(,0)?\)", target.native.lower())
    )
    if _is_whole(source) and whole_target:
        return INTEGER
    if source.type == "binary" and target.base == "bytea" and "bit" not in source.source_type + target.native:
        return BYTES
    return JUDGED[kinds[0]].keys[2](source, target) if kinds[0] == kinds[1] else None


def source_kind(engine: str, column: Column) -> str | None:
    """The kind of a column that the source alone is cut by; None if it can't be."""
    if _is_whole(column):
        return INTEGER
    if column.decimal() is not None:
        return NUMBER
    native = column.source_type.lower()
    if column.type == "binary":
        return BYTES if "binary" in native or "blob" in native or native == "bytea" else None
    return JUDGED[engine].keys[0](column)


def target_kind(engine: str, column: TargetColumnText) -> str | None:
    """The kind of a column that the target alone is cut by, or its rows found by; None if they can't be."""
    return JUDGED[engine].keys[1](column)


def _is_whole(column: Column) -> bool:
    return column.type in _INTEGERS or re.fullmatch(r"decimal\(\d+,0\)", column.type) is not None
