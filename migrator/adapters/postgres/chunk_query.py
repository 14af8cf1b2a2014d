"""The SELECT of a chunk: columns as they reach Arrow exactly, keyset predicate, order, limit."""

from __future__ import annotations

from typing import Any

from migrator.adapters.postgres.reflection import ReflectedColumn, ReflectedTable
from migrator.adapters.postgres.relations import quoted
from migrator.adapters.postgres.types import native_cast
from migrator.errors import SourceError
from migrator.model.event import Key, Value
from migrator.model.table import TableId, TableSchema

_PLAIN_TEXT = {"int16", "int32", "int64", "string"}
"""Key types whose Arrow value prints as the server prints it; others are selected as text as well."""


class ChunkQuery:
    """The statements that read chunks of one table with one schema.

    Args:
        schema: columns and key to read.
        table: the table as reflected now; it has at least these columns.
    """

    def __init__(self, schema: TableSchema, table: ReflectedTable):
        self.table = table
        self._schema = schema
        self._columns = {reflected.column.name: reflected for reflected in table.columns}
        self._key = [self._columns[name] for name in schema.key]
        self._texts = [name for name in schema.key if not self._prints_plainly(name)]
        calls = (f"pg_catalog.set_config('migrator.k{n}', ${n}, true)" for n in range(1, len(self._key) + 1))
        self.bind_statement = "SELECT " + ", ".join(calls)

    @staticmethod
    def name_of(table: TableId) -> str:
        """The table's quoted name."""
        return quoted(table)

    def select(self, resumed: bool, limit_rows: int) -> str:
        """The SELECT without parameters; ``resumed`` starts it after the bound key."""
        columns = [self._expression(self._columns[column.name]) for column in self._schema.columns]
        columns += [
            f"{self._output(self._columns[name])} AS {_identifier('__key_' + name)}" for name in self._texts
        ]
        # Qualified: a bare name in ORDER BY would mean the output column, which may be the key's text.
        names = ", ".join(f"source_row.{_identifier(name)}" for name in self._schema.key)
        where = f" WHERE ({names}) > ({', '.join(self._bound_values())})" if resumed else ""
        return (
            f"SELECT {', '.join(columns)} FROM {quoted(self._schema.id)} AS source_row{where} "
            f"ORDER BY {names} LIMIT {int(limit_rows)}"
        )

    def bound(self, key: Key) -> tuple[str, ...]:
        """A key as parameters of ``bind_statement``. Raises SourceError if it can't be a key of this table."""
        if len(key) != len(self._key) or None in key:
            raise SourceError(
                f"{key!r} isn't a key of {self._schema.id}", remedy="start the dump of this table anew"
            )
        return tuple(_bound_text(value) for value in key)

    def last_key(self, rows: Any) -> Key | None:
        """The key of the last row as canonical text (``bytes`` for bytea); ``rows`` as the SELECT returned them."""
        if not rows.num_rows:
            return None
        return tuple(self._key_value(name, rows) for name in self._schema.key)

    def _key_value(self, name: str, rows: Any) -> Value:
        column = "__key_" + name if name in self._texts else name
        value = rows.column(column)[rows.num_rows - 1].as_py()
        return value if isinstance(value, bytes) else str(value)

    def _prints_plainly(self, name: str) -> bool:
        column = self._columns[name]
        return column.column.type in ({*_PLAIN_TEXT, "binary"}) or column.column.decimal() is not None

    def _bound_values(self) -> list[str]:
        """``current_setting`` is stable, so the comparison is an index condition; the server compares, with the
        column's own type and collation.
        """
        return [
            f"pg_catalog.current_setting('migrator.k{n}')::{reflected.column.source_type}"
            for n, reflected in enumerate(self._key, 1)
        ]

    def _expression(self, reflected: ReflectedColumn) -> str:
        name = _identifier(reflected.column.name)
        cast = native_cast(reflected.base_oid)
        if cast is not None:
            return f"{name}::{cast} AS {name}"
        return f"{self._output(reflected)} AS {name}"

    def _output(self, reflected: ReflectedColumn) -> str:
        """The text the log has: the type's output function. A cast to text isn't always that (inet, char(n), xml)."""
        return f"{reflected.output_function}({_identifier(reflected.column.name)})::text"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _bound_text(value: Value) -> str:
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)
