"""The values of a source's key that values of a target's key stand for, where a mapping hands the key through.

A repair reads the source rows whose keys it lists. It must miss none of which the target would take the key for a
doubted one: so two values that the target takes for one must be one to the source as well. The source may take more
values for one: then rows are read that nobody doubted, and are written as they are.
"""

from __future__ import annotations

import re

from migrator.model.event import Value
from migrator.model.table import Column
from migrator.model.target import TargetColumn

_WHOLE_NUMBERS = ("int8", "int16", "int32", "int64", "tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\(\d+,\s*(\d+)\)")
_PADDED = frozenset({"character", "char"})
"""Texts whose blanks at the end don't count, whatever their collation says."""
_TEXTS = _PADDED | {"text", "character varying", "varchar", "tinytext", "mediumtext", "longtext"}
_BYTES = frozenset({"bytea", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_SPARKS = {"date": "date", "datetime": "timestamp_ntz", "instant": "timestamp"}
_NATIVE = {"date": "date", "timestamp": "datetime", "timestamptz": "instant"}
_IN_TEXT = {"date": "date", "datetime": "datetime", "timestamp": "instant"}
"""Moments of MySQL and MariaDB, which are captured as text."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
_DIGITS = re.compile(r"\((\d+)\)")


def alike(source: Column, target: TargetColumn) -> bool:
    """Tells whether values that the target's key takes for one are one to the source, and look the same as text."""
    decimals = _decimals(source.type)
    if decimals is not None:  # with fewer of them two numbers may become one
        kept = _decimals(target.spark_type)
        return kept is not None and kept >= decimals
    theirs, ours = _base(source.source_type), _base(target.native_type)
    if source.type == "binary":  # of a fixed length: zeros at the end don't count
        return ours in _BYTES or (theirs == "binary" and source.source_type == target.native_type)
    if moment := _moment(source):
        return target.spark_type == _SPARKS[moment] and _digits(source.source_type) <= _digits(
            target.native_type
        )
    if theirs == "uuid":
        return ours == "uuid" or ours in _TEXTS
    return (
        source.type == "string"
        and theirs in {*_TEXTS, "citext"}
        and _is_coarser(source, theirs, target, ours)
    )


def _is_coarser(source: Column, theirs: str, target: TargetColumn, ours: str) -> bool:
    """Tells whether texts that the target takes for one are one to the source."""
    if ours not in _TEXTS or (ours in _PADDED and theirs not in _PADDED):
        return False
    # MySQL and MariaDB mean the same by one name. The name of a collation of a PostgreSQL target has quotes in it.
    return target.collation in ("", source.collation)


def source_value(source: Column, text: str) -> Value | None:
    """The value of a source's key column, from the text of a target's; None where it isn't surely one.

    Args:
        source: a column for which ``alike`` holds.
        text: as ``verify`` prints it: bytes in hexadecimal, moments as ``2026-01-31 12:00:00.5``, those of a zone in
            UTC with a ``Z`` behind.
    """
    if source.type == "binary":
        try:
            return bytes.fromhex(text.removeprefix("0x").removeprefix("\\x"))
        except ValueError:
            return None
    moment = _moment(source)
    if not moment:
        return None if "\0" in text else text
    plain = text.removesuffix("Z").removesuffix("+00")
    if _MOMENT.fullmatch(plain) is None or (len(plain) == len("2026-01-31")) is not (moment == "date"):
        return None  # beyond year 9999, infinite, or in another form
    return f"{plain}+00" if source.type == "timestamptz" else plain


def _moment(source: Column) -> str:
    """The kind of a column of moments; empty for all others."""
    if source.type == "string":
        return _IN_TEXT.get(_base(source.source_type), "")
    return _NATIVE.get(source.type, "")


def _base(declared: str) -> str:
    """The name of a type without length and attributes."""
    return declared.lower().split("(", maxsplit=1)[0].strip()


def _digits(declared: str) -> int:
    """The digits of a second that a type of moments keeps: PostgreSQL's six unless it says less, MySQL's none."""
    found = _DIGITS.search(declared)
    return int(found[1]) if found else 6 if "zone" in declared else 0


def _decimals(type_name: str) -> int | None:
    """The decimals of a type of exact numbers, ours or Spark's; None for all other types."""
    if type_name in _WHOLE_NUMBERS:
        return 0
    found = _DECIMAL.fullmatch(type_name)
    return None if found is None else int(found[1])
