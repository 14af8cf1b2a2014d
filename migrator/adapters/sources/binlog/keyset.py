"""The SELECT of a chunk: key-ordered, compared by the database itself, values as the log path prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from migrator.connections.mysql.sql import quote, quote_table
from migrator.errors import SourceError
from migrator.model.event import Key, Value
from migrator.model.table import Column, TableSchema

_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'")
_IN_LABEL = re.compile(r"''|\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "0": "\0"}
_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")
_SIGNED_MAX = 2**63 - 1
_NUMERIC = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year")

Quote = Callable[[str], str]
"""Quotes a text value for this connection."""


def base_type(column: Column) -> str:
    """The name of a source type without length and attributes: ``varchar(20)`` -> ``varchar``."""
    return re.split(r"[(\s]", column.source_type.lower(), maxsplit=1)[0]


def chunk_select(
    schema: TableSchema, index: str | None, limit_rows: int, conditions: Sequence[str] = ()
) -> str:
    """The statement that reads the first rows in key order for which the conditions hold."""
    columns = ", ".join(_printed(column) for column in schema.columns)
    return f"SELECT {columns}{_ordered(schema, index, conditions)} LIMIT {limit_rows:d}"


def nth_key(schema: TableSchema, index: str | None, conditions: Sequence[str], number: int) -> str:
    """The statement that reads the key of the ``number``-th row (from 1) in key order; none if there are fewer."""
    return f"SELECT {_key(schema)}{_ordered(schema, index, conditions)} LIMIT 1 OFFSET {number - 1:d}"


def last_key(schema: TableSchema, index: str | None, conditions: Sequence[str]) -> str:
    """The statement that reads the key of the last row in key order; none if there is none."""
    return f"SELECT {_key(schema)}{_ordered(schema, index, conditions, ' DESC')} LIMIT 1"


def _key(schema: TableSchema) -> str:
    return ", ".join(_printed(schema.columns[place]) for place in schema.key_indexes())


def _ordered(schema: TableSchema, index: str | None, conditions: Sequence[str], order: str = "") -> str:
    hint = f" FORCE INDEX ({quote(index)})" if index else ""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    names = ", ".join(f"{quote(name)}{order}" for name in schema.key)
    return f" FROM {quote_table(schema.id)}{hint}{where} ORDER BY {names}"


def compared(schema: TableSchema, operator: str, bound: Key, quote_text: Quote) -> str:
    """The condition that a row's key is ``>``, ``>=`` or ``<=`` a key.

    ``(a, b) > (x, y)`` is spelt out: neither engine uses an index for a comparison of rows.
    """
    key, values = [quote(name) for name in schema.key], _literals(schema, bound, quote_text)
    cases = []
    for place in range(len(key)):
        equal = [f"{name} = {value}" for name, value in zip(key[:place], values[:place], strict=True)]
        here = operator if place == len(key) - 1 else operator[0]
        cases.append(" AND ".join([*equal, f"{key[place]} {here} {values[place]}"]))
    if len(cases) == 1:
        return cases[0]
    # the first condition gives the optimizer one range to begin at
    return f"{key[0]} {operator[0]}= {values[0]} AND ({' OR '.join(f'({case})' for case in cases)})"


def listed(schema: TableSchema, keys: Sequence[Key], quote_text: Quote) -> str:
    """The condition that a row's key is one of these."""
    rows = [_literals(schema, key, quote_text) for key in keys]
    names = [quote(name) for name in schema.key]
    if len(names) == 1:
        values = [row[0] for row in rows]
        large = [value for value in values if value.isdecimal() and int(value) > _SIGNED_MAX]
        if large and len(large) < len(values):  # MariaDB finds a list of both by no index
            small = [value for value in values if value not in set(large)]
            return f"({names[0]} IN ({', '.join(small)}) OR {names[0]} IN ({', '.join(large)}))"
        return f"{names[0]} IN ({', '.join(values)})"
    cases = (
        " AND ".join(f"{name} = {value}" for name, value in zip(names, row, strict=True)) for row in rows
    )
    return f"({' OR '.join(f'({case})' for case in cases)})"


def _literals(schema: TableSchema, key: Key, quote_text: Quote) -> list[str]:
    return [
        literal(schema.columns[place], value, quote_text)
        for place, value in zip(schema.key_indexes(), key, strict=True)
    ]


def _printed(column: Column) -> str:
    """A column such that it is printed in full: not cut to six digits, not filled with zeros."""
    kind, name, declared = base_type(column), quote(column.name), column.source_type.lower()
    if kind == "float" or (kind == "double" and ("(" in declared or "zerofill" in declared)):
        return f"CAST({name} AS DOUBLE)"
    if "zerofill" in declared:
        size = re.match(r"decimal(\(\d+,\d+\))", declared)
        return f"CAST({name} AS {f'DECIMAL{size[1]}' if size else 'UNSIGNED'})"
    return name


def literal(column: Column, value: Value, quote_text: Quote) -> str:
    """A key value such that the comparison is the column's own: numbers as numbers, binary as binary.

    Raises ``SourceError`` for a value that isn't one of the column.
    """
    kind = base_type(column)
    if isinstance(value, bytes):
        return str(int.from_bytes(value, "big")) if kind == "bit" else f"X'{value.hex()}'"
    if value is None:
        raise _wrong(column, value)
    if kind in _NUMERIC or kind in ("float", "double"):
        if not _NUMBER.fullmatch(value):
            raise _wrong(column, value)
        return value if kind in _NUMERIC or "e" in value else f"{value}e0"
    if kind in ("enum", "set"):
        return str(_label_number(column, kind, value))
    return quote_text(value)


def labels(column: Column) -> list[str]:
    """The labels of an enum or set, from its declaration, which has a ``?`` for each character beyond the BMP."""
    return [_IN_LABEL.sub(_unescaped, found) for found in _LABEL.findall(column.source_type)]


def _unescaped(found: re.Match[str]) -> str:
    return "'" if found[1] is None else _ESCAPED.get(found[1], found[1])


def _label_number(column: Column, kind: str, value: str) -> int:
    """An enum or set is ordered by number; compared with a string it would compare as text."""
    known = labels(column)
    try:
        if kind == "set":
            return sum(1 << _place(known, label) for label in value.split(",") if value)
        return _place(known, value) + 1 if value in known or value else 0
    except ValueError as error:
        raise _wrong(column, value) from error


def _place(known: Sequence[str], label: str) -> int:
    """Raises ``ValueError`` for none of them, or where the declaration can't tell which."""
    shown = _BEYOND_BMP.sub("?", label)
    if shown != label and known.count(shown) > 1:
        raise ValueError(label)
    return known.index(shown)


def _wrong(column: Column, value: Value) -> SourceError:
    return SourceError(
        "a key value doesn't fit its column",
        where=f"column {column.name} ({column.source_type}), value {value!r}",
        remedy="the stored dump progress belongs to another schema: start the migration anew"
        " (docs/how-to/start-anew.md)",
    )
