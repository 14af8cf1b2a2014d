"""The SELECT of a chunk: columns as they reach Arrow exactly, keyset predicate, order, limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from migrator.adapters.sources.postgres.reflection import ReflectedColumn, ReflectedTable
from migrator.adapters.sources.postgres.types import logical_type, native_cast
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import SourceError
from migrator.model.event import Key, Value
from migrator.model.table import TableId, TableSchema

AFTER, LOW, HIGH, LISTED = "k", "low", "high", "listed"
"""Names under which keys are bound."""
_PLAIN_TEXT = {"int16", "int32", "int64", "string"}
"""Key types whose Arrow value prints as the server prints it; others are selected as text as well."""


class ChunkQuery:
    """The statements that read chunks of one table with one schema.

    Args:
        schema: columns and key to read; kept as an attribute.
        table: the table as reflected now; it has at least these columns.
        operators: schemas of operators that compare keys, beside pg_catalog, as in ``search_path``; none if empty.
    """

    def __init__(self, schema: TableSchema, table: ReflectedTable, operators: str = ""):
        self.table = table
        self._operators = operators
        self.schema = schema
        self._columns = {reflected.column.name: reflected for reflected in table.columns}
        self._key = [self._columns[name] for name in schema.key]
        self._texts = [name for name in schema.key if not self._prints_plainly(name)]

    @staticmethod
    def name_of(table: TableId) -> str:
        """The table's quoted name."""
        return quoted(table)

    def keyed(self, columns: tuple[str, ...]) -> ChunkQuery:
        """The same query where a row's key is the values of these columns; of none: as it is."""
        if not columns:
            return self
        return ChunkQuery(replace(self.schema, key=columns), self.table, self._operators)

    def settings(self) -> str:
        """Returns the statement that the open transaction needs before keys are compared in it; nothing if empty.

        pg_catalog comes first: for its own types nobody's operators count but its own.
        """
        return f"SET LOCAL search_path = pg_catalog, {self._operators}" if self._operators else ""

    def binding(self, name: str) -> str:
        """Binds a key under a name, for the rest of the transaction; its parameters come from ``bound``."""
        calls = (
            f"pg_catalog.set_config('migrator.{name}{n}', ${n}, true)" for n in range(1, len(self._key) + 1)
        )
        return "SELECT " + ", ".join(calls)

    def compared(self, operator: str, name: str) -> str:
        """The condition that a row's key stands in this relation to the key bound under a name."""
        return f"({self._names()}) {operator} ({', '.join(self._bound_values(name))})"

    def listed(self) -> str:
        """The condition that a row's key is one of those bound as JSON under the name ``LISTED``."""
        values = ", ".join(
            f"(e.k ->> {n})::{column.column.source_type}" for n, column in enumerate(self._key)
        )
        array = f"pg_catalog.current_setting('migrator.{LISTED}')::pg_catalog.jsonb"
        return f"({self._names()}) IN (SELECT {values} FROM pg_catalog.jsonb_array_elements({array}) AS e(k))"

    def listing(self, keys: Sequence[Key]) -> tuple[str, str]:
        """The statement that binds listed keys, and its parameter."""
        document = json.dumps([self.bound(key) for key in keys])
        return f"SELECT pg_catalog.set_config('migrator.{LISTED}', $1, true)", document

    def nth(self, conditions: Sequence[str], number: int) -> str:
        """The key, as text, of the ``number``-th row (from 1) in key order; no row when there are fewer."""
        return self._one_key(conditions, f"ORDER BY {self._names()} OFFSET {int(number) - 1}")

    def last(self, conditions: Sequence[str]) -> str:
        """The key, as text, of the last row in key order; no row when there is none."""
        return self._one_key(conditions, f"ORDER BY {self._names(' DESC')}")

    def _one_key(self, conditions: Sequence[str], order: str) -> str:
        """The inner SELECT passes over keys as they are; only the one that is found is made text."""
        texts = ", ".join(self._output(column) for column in self._key)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        found = f"SELECT {self._names()} FROM {quoted(self.schema.id)} AS source_row{where} {order} LIMIT 1"
        return f"SELECT {texts} FROM ({found}) AS found"

    def key_of(self, texts: Sequence[str]) -> Key:
        """A row of ``nth`` or ``last`` as a key."""
        return tuple(
            bytes.fromhex(text[2:]) if column.column.type == "binary" else text
            for column, text in zip(self._key, texts, strict=True)
        )

    def select(self, limit_rows: int, conditions: Sequence[str] = ()) -> str:
        """The SELECT, without parameters, of the first rows in key order for which the conditions hold."""
        columns = [self._expression(self._columns[column.name]) for column in self.schema.columns]
        columns += [
            f"{self._output(self._columns[name])} AS {_identifier('__key_' + name)}" for name in self._texts
        ]
        # Qualified: a bare name in ORDER BY would mean the output column, which may be the key's text.
        names = self._names()
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return (
            f"SELECT {', '.join(columns)} FROM {quoted(self.schema.id)} AS source_row{where} "
            f"ORDER BY {names} LIMIT {int(limit_rows)}"
        )

    def bound(self, key: Key) -> tuple[str, ...]:
        """A key as parameters of ``binding``. Raises SourceError if it can't be a key of this table."""
        if len(key) != len(self._key) or None in key:
            raise SourceError(
                f"{key!r} isn't a key of {self.schema.id}", remedy="start the dump of this table anew"
            )
        return tuple(_bound_text(value) for value in key)

    def last_key(self, rows: Any) -> Key | None:
        """The key of the last row as canonical text (``bytes`` for bytea); ``rows`` as the SELECT returned them."""
        if not rows.num_rows:
            return None
        return tuple(self._key_value(name, rows) for name in self.schema.key)

    def _key_value(self, name: str, rows: Any) -> Value:
        column = "__key_" + name if name in self._texts else name
        value = rows.column(column)[rows.num_rows - 1].as_py()
        return value if isinstance(value, bytes) else str(value)

    def _prints_plainly(self, name: str) -> bool:
        column = self._columns[name]
        return column.column.type in ({*_PLAIN_TEXT, "binary"}) or column.column.decimal() is not None

    def _names(self, order: str = "") -> str:
        return ", ".join(f"source_row.{_identifier(name)}{order}" for name in self.schema.key)

    def _bound_values(self, name: str) -> list[str]:
        """``current_setting`` is stable, so the comparison is an index condition; the server compares, with the
        column's own type and collation.
        """
        return [
            f"pg_catalog.current_setting('migrator.{name}{n}')::{reflected.column.source_type}"
            for n, reflected in enumerate(self._key, 1)
        ]

    def _expression(self, reflected: ReflectedColumn) -> str:
        name = _identifier(reflected.column.name)
        cast = native_cast(reflected.base_oid)
        if cast is not None and reflected.column.type == logical_type(reflected.base_oid, -1):
            return f"{name}::{cast} AS {name}"
        return f"{self._output(reflected)} AS {name}"

    def _output(self, reflected: ReflectedColumn) -> str:
        return reflected.printed(_identifier(reflected.column.name))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _bound_text(value: Value) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)
