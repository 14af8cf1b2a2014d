"""The test whether a foreign key's equality is that of our links, which look values up exactly. Pure.

A server's key may take two spellings for one value: other case or accents, blanks at the end, ``1.0`` and ``1.00``,
``0`` and ``-0``. What is listed here was compared with the servers' own ``=``; whatever isn't listed is held to be
wider.

Sources: PostgreSQL documentation, "Character Types", "Collation Support"; MySQL manual, "The CHAR and VARCHAR
    Types"; MariaDB documentation, "Supported Character Sets and Collations".
"""

from __future__ import annotations

import re

from migrator.model.table import NONDETERMINISTIC, Column

_WHOLE_NUMBERS = ("int8", "int16", "int32", "int64")
_SAME_VALUES = ("bool", "date", "timestamp", "timestamptz")
"""Logical types whose values are equal to the server where they are equal to us, whatever their precision."""
_POSTGRES_TEXT = re.compile(r"text|character varying(\(\d+\))?|name")
_SPELT_ONE_WAY = re.compile(
    r"uuid|bytea|time(\(\d+\))? without time zone|character(\(\d+\))?|datetime(\(\d\))?"
)
"""Types whose equal values a server prints alike, if both columns have the same length."""
_BINARY = re.compile(r"(binary|varbinary)\(\d+\)")
_PADDED = re.compile(r"char\(\d+\)")
_VARYING = re.compile(r"varchar\(\d+\)")
"""Types whose values keep blanks at their end; only some collations compare these blanks."""


def compared_exactly(child: Column, parent: Column) -> bool:
    """Tells whether a foreign key from one column to the other joins only values that are equal to us."""
    if child.type in _WHOLE_NUMBERS or parent.type in _WHOLE_NUMBERS:
        return child.type in _WHOLE_NUMBERS and parent.type in _WHOLE_NUMBERS
    if (decimals := child.decimal()) is not None:
        other = parent.decimal()
        return other is not None and decimals[1] == other[1]
    if child.type != parent.type:
        return False
    if child.type in _SAME_VALUES:
        return True
    return _same_texts(child, parent)


def _same_texts(child: Column, parent: Column) -> bool:
    """Tells whether columns that reach us as text or as bytes join only values that are equal to us."""
    declared = (child.source_type, parent.source_type)
    one_type = child.source_type == parent.source_type
    if all(map(_POSTGRES_TEXT.fullmatch, declared)) or (one_type and _SPELT_ONE_WAY.fullmatch(declared[0])):
        return not any(column.collation.endswith(NONDETERMINISTIC) for column in (child, parent))
    if child.collation != parent.collation:
        return False
    if all(map(_VARYING.fullmatch, declared)):
        return child.collation.endswith(("_nopad_bin", "_0900_bin"))
    if one_type and _PADDED.fullmatch(declared[0]):  # blanks at its end are no part of a value
        return child.collation.endswith("_bin")
    return one_type and _BINARY.fullmatch(declared[0]) is not None


def spoken_type(column: Column) -> str:
    """The column's type and collation, as a message has them."""
    return f"{column.source_type} by {column.collation}" if column.collation else column.source_type
