"""AUTO_INCREMENT counters and MariaDB's sequences: what both sides of a migration read of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query, quote_table
from migrator.model.sequence import HandedOut
from migrator.model.table import TableId

Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs one query with ``%s`` placeholders."""

_COUNTERS = """
SELECT c.table_name, c.column_name, c.data_type, c.column_type, t.auto_increment
FROM information_schema.columns c JOIN information_schema.tables t
  ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE c.table_schema = %s AND c.table_name IN %s AND c.extra LIKE '%%auto_increment%%' ORDER BY c.table_name
"""
_DEFAULTS = """
SELECT table_schema, table_name, column_name, data_type, column_type, column_default FROM information_schema.columns
WHERE column_default LIKE '%%nextval(%%' ORDER BY table_schema, table_name, ordinal_position
"""
_NEXT_VALUE = re.compile(r"nextval\(`((?:[^`]|``)*)`\.`((?:[^`]|``)*)`\)", re.IGNORECASE)
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


@dataclass(frozen=True, slots=True)
class Counter:
    """An AUTO_INCREMENT column; ``following``: the value that the server would give next."""

    table: str
    column: str
    greatest: int
    following: int


@dataclass(frozen=True, slots=True)
class NextValue:
    """A column whose default takes from a sequence; ``plain``: its value as it is. ``greatest`` 0: no integer."""

    table: TableId
    column: str
    sequence: TableId
    plain: bool
    greatest: int


@dataclass(frozen=True, slots=True)
class State:
    """A MariaDB sequence; values up to ``following`` may be cached by the server, and are lost when it stops."""

    following: int
    least: int
    greatest: int
    step: int
    cycles: bool


def counters(rows: Rows, database: str, tables: Sequence[str]) -> list[Counter]:
    """The AUTO_INCREMENT columns of these tables."""
    if not tables:
        return []
    return [
        Counter(str(table), str(column), _greatest(_text(kind), _text(declared)), int(following or 1))
        for table, column, kind, declared, following in rows(_COUNTERS, [database, list(tables)])
    ]


def next_values(rows: Rows) -> Iterator[NextValue]:
    """Every column of the server that is visible to us and whose default takes from a sequence."""
    for schema, table, column, kind, declared, default in rows(_DEFAULTS, ()):
        text = _text(default)
        for found in _NEXT_VALUE.finditer(text):
            yield NextValue(
                TableId(str(schema), str(table)),
                str(column),
                TableId(*(part.replace("``", "`") for part in found.groups())),
                found[0] == text,
                _greatest(_text(kind), _text(declared)),
            )


def state(rows: Rows, sequence: TableId) -> State:
    """A sequence now. Needs SELECT on it."""
    [(following, least, greatest, step, cycles)] = rows(
        "SELECT next_not_cached_value, minimum_value, maximum_value, increment, cycle_option"
        f" FROM {quote_table(sequence)}",
        (),
    )
    return State(int(following), int(least), int(greatest), int(step) or 1, bool(cycles))


def handed_out(source: BinlogSource, columns: Sequence[tuple[str, str]]) -> dict[tuple[str, str], HandedOut]:
    """``ports.sequences.SourceNumbers`` of a MySQL or MariaDB source."""
    connection = connect(source)
    try:
        with named_errors(source, "the source's sequences can't be read"):

            def rows(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
                return query(connection, statement, parameters)

            found = {
                (one.table, one.column): HandedOut(one.following - 1, 1)
                for one in counters(rows, source.server.database, sorted({table for table, _ in columns}))
            }
            for one in next_values(rows):
                if one.table.schema == source.server.database and (one.table.name, one.column) in columns:
                    now = state(rows, one.sequence)
                    found[one.table.name, one.column] = HandedOut(now.following - now.step, now.step)
            return {place: number for place, number in found.items() if place in columns}
    finally:
        connection.close()


def _greatest(kind: str, declared: str) -> int:
    bits = _BITS.get(kind.lower(), 0)
    return 0 if not bits else 2**bits - 1 if "unsigned" in declared.lower() else 2 ** (bits - 1) - 1


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
