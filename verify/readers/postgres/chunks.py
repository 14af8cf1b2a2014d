"""Pieces of a PostgreSQL table, source or target, over sessions that stay: each piece has a view of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, LiteralString

import pyarrow as pa
from psycopg import sql

from migrator.connections.postgres.constraints import NOT_NULL
from migrator.model.table import TableSchema
from verify.readers.chunk_keys import (
    BYTES,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Dialect,
    Key,
    KeyColumn,
)
from verify.readers.ports import Bracket, Digest
from verify.readers.postgres.ledger import PostgresLedger
from verify.readers.postgres.session import Convert, PostgresSnapshot, PostgresViews
from verify.readers.snapshot import LedgerState, LogPlace, TargetColumnText

_EXTREMES = {
    "2147483647": "infinity",
    "-2147483648": "-infinity",
    "9223372036854775807": "infinity",
    "-9223372036854775808": "-infinity",
}
_MICROSECONDS = (
    "CASE {0} WHEN 'infinity' THEN 9223372036854775807 WHEN '-infinity' THEN '-9223372036854775808'::int8"
    " ELSE (extract(epoch FROM {0}) * 1000000)::int8 END::text"
)
_KEY_TEXTS = {
    INTEGER: "{}::text",
    DATE: "CASE {0} WHEN 'infinity' THEN 2147483647 WHEN '-infinity' THEN '-2147483648'::int4"
    " ELSE {0} - date '1970-01-01' END::text",
    UUID: "{}::text",
    BYTES: "encode({}, 'hex')",
    NUMBER: "{}::text",
    TIMESTAMP: _MICROSECONDS,
    TIMESTAMPTZ: _MICROSECONDS,
    TEXT: "{}::text",
}
_UNIQUE: LiteralString = f"""
SELECT EXISTS (
  SELECT FROM pg_index i JOIN pg_class r ON r.oid = i.indrelid JOIN pg_namespace n ON n.oid = r.relnamespace
  WHERE n.nspname = %s AND r.relname = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
    AND %s::text[] = ARRAY(
      SELECT CASE WHEN {NOT_NULL} THEN a.attname::text END
      FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
      LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE k.place <= i.indnkeyatts ORDER BY k.place))
"""


def quoted(name: str) -> str:
    """An identifier as the server takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def literal(kind: str, value: str) -> str:
    """A key's canonical text, checked before, as the server reads it."""
    if kind == DATE:
        known = _EXTREMES.get(value)
        return f"'{known}'::date" if known else f"(date '1970-01-01' + ({value}))"
    if kind == UUID:
        return f"'{value}'::uuid"
    if kind == BYTES:
        return f"'\\x{value}'::bytea"
    if kind in (TIMESTAMP, TIMESTAMPTZ):
        return _moment(kind, value)
    if kind == TEXT:  # of no type: the server takes it for one of the column's
        return sql.Literal(value).as_string()
    return f"'{value}'::numeric" if value.endswith(("NaN", "Infinity")) else value


def _moment(kind: str, value: str) -> str:
    """Whole seconds and the rest apart: an interval of microseconds alone would pass through a double."""
    if value in _EXTREMES:
        return f"'{_EXTREMES[value]}'::{kind}"
    seconds, rest = divmod(int(value), 1_000_000)
    return (
        f"('1970-01-01 00:00:00+00'::{kind} + interval '{seconds} seconds' + interval '{rest} microseconds')"
    )


DIALECT = Dialect(quoted, literal, rows=True)


class PostgresSourceChunks:
    """See ``verify.readers.ports.SourceChunks``. ``place`` gives the log's end; it is called between views."""

    dialect = DIALECT

    def __init__(
        self,
        views: PostgresViews,
        place: Callable[[], LogPlace],
        schema: TableSchema,
        columns: sql.Composed,
        convert: Convert,
    ):
        self._views, self._place = views, place
        self._schema, self._columns, self._convert = schema, columns, convert
        self._after: LogPlace | None = None

    @property
    def schema(self) -> TableSchema:
        """The table, as it was when reading began."""
        return self._schema

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        """See the port. It counts within one chunk of the index, so that it costs the same at any place."""
        with self._views.view() as view:
            return nth_key(view, self._name(), [(column.source, column.kind) for column in key], where, rows)

    def ends(self, key: KeyColumn) -> tuple[str, str] | None:
        """See the port."""
        column = quoted(key.source)
        with self._views.view() as view:
            [(least, greatest)] = view.rows(
                _sql(f"SELECT min({column})::text, max({column})::text FROM {self._name()}")
            )
        return None if least is None else (least, greatest)

    def digest(self, numbers: str, where: str) -> tuple[Bracket, Digest]:
        """See the port."""
        bracket, found = self._one_row(f"SELECT {numbers} FROM {self._name()} WHERE {where}")
        return bracket, digest_of(found)

    def read(self, where: str, path: Path) -> tuple[Bracket, int]:
        """See the port."""
        query = sql.SQL("SELECT {} FROM {} WHERE {}").format(
            self._columns, sql.Identifier(self._schema.id.schema, self._schema.id.name), _sql(where)
        )
        low = self._low()
        with self._views.view(bulk=True) as view:
            rows = view.to_parquet(
                query, self._schema.names(), path, self._convert, f"table {self._schema.id}"
            )
        return self._bracket(low), rows

    def _one_row(self, query: str) -> tuple[Bracket, tuple[Any, ...]]:
        """Runs a query in a view of its own and returns its one row, with the places in the log around the view."""
        low = self._low()
        [[found]] = self._views.at_once(_sql(query))
        return self._bracket(low), found

    def _low(self) -> LogPlace:
        """The log's end before a view: the end after one view is an end before the next."""
        return self._after or self._place()

    def _bracket(self, low: LogPlace) -> Bracket:
        """Brackets a view, which is gone by now, with the log's end after it."""
        self._after = self._place()
        return Bracket(low, self._after)

    def _name(self) -> str:
        return f"{quoted(self._schema.id.schema)}.{quoted(self._schema.id.name)}"


class PostgresTargetChunks:
    """See ``verify.readers.ports.TargetChunks``."""

    dialect = DIALECT

    def __init__(
        self,
        views: PostgresViews,
        ledger: PostgresLedger,
        table: tuple[str, str],
        columns: tuple[TargetColumnText, ...],
        selected: sql.Composed,
        convert: Convert,
    ):
        self._views, self._ledger, self._table = views, ledger, table
        self._columns, self._selected, self._convert = columns, selected, convert
        self._has_ledger = False  # seen there: a query for it may be one of several in a message

    @property
    def columns(self) -> tuple[TargetColumnText, ...]:
        """The columns of the table."""
        return self._columns

    def has_key(self, names: Sequence[str]) -> bool:
        """See the port."""
        with self._views.view() as view:
            return bool(view.rows(_UNIQUE, (*self._table, list(names)))[0][0])

    def count(self, upto: int) -> int:
        """See the port."""
        with self._views.view() as view:
            return counted(view, self._name(), upto)

    def end(self, key: Sequence[KeyColumn], where: str, rows: int) -> Key | None:
        """See the port."""
        with self._views.view() as view:
            return nth_key(view, self._name(), [(column.target, column.kind) for column in key], where, rows)

    def ledger(self) -> LedgerState | None:
        """The ledger now."""
        with self._views.view() as view:
            return self._ledger.read(view)

    def digest(self, numbers: str, where: str) -> tuple[LedgerState | None, Digest]:
        """See the port."""
        query = _sql(f"SELECT {numbers} FROM {self._name()} WHERE {where}")
        if self._has_ledger:
            rows, [found] = self._views.at_once(self._ledger.query, query)
            return self._ledger.state(rows), digest_of(found)
        with self._views.view() as view:
            ledger = self._ledger.read(view)
            self._has_ledger = ledger is not None
            return ledger, digest_of(view.rows(query)[0])

    def read(self, where: str, path: Path) -> tuple[LedgerState | None, int]:
        """See the port."""
        query = sql.SQL("SELECT {} FROM {} WHERE {}").format(
            self._selected, sql.Identifier(*self._table), _sql(where)
        )
        names = [column.name for column in self._columns if not column.generated]
        with self._views.view(bulk=True) as view:
            ledger = self._ledger.read(view)
            return ledger, view.to_parquet(query, names, path, self._convert, f"table {self._table[1]}")

    def _name(self) -> str:
        return ".".join(map(quoted, self._table))


def nth_key(
    view: PostgresSnapshot, table: str, key: Sequence[tuple[str, str]], where: str, rows: int
) -> Key | None:
    """The key of the ``rows``-th row under a condition, in key order; None if there are fewer.

    Args:
        view: any.
        table: quoted.
        key: names and kinds of its columns.
        where: the condition.
        rows: at least 1.
    """
    texts = ", ".join(_KEY_TEXTS[kind].format(quoted(name)) for name, kind in key)
    # Qualified: a bare name would be the text that is selected, and its order another one.
    order = ", ".join(f"rows_.{quoted(name)}" for name, _ in key)
    query = f"SELECT {texts} FROM {table} AS rows_ WHERE {where} ORDER BY {order} LIMIT 1 OFFSET {rows - 1:d}"
    found = view.rows(_sql(query))
    return tuple(found[0]) if found else None


def counted(view: PostgresSnapshot, table: str, upto: int, where: str = "1 = 1") -> int:
    """Rows of a table under a condition, counted up to a number."""
    query = f"SELECT count(*) FROM (SELECT FROM {table} WHERE {where} LIMIT {upto:d}) AS counted_"
    return int(view.rows(_sql(query))[0][0])


def digest_of(row: Sequence[Any]) -> Digest:
    """Makes a digest from rows, hashed rows and sums, as numbers or texts. Whether a hash has a sign differs between
    servers."""
    return Digest(int(row[0]), int(row[1]), tuple(int(value) % 2**64 for value in row[2:]))


def as_strings(batch: pa.RecordBatch) -> pa.RecordBatch:
    """All columns as text."""
    return batch.cast(pa.schema([pa.field(name, pa.string()) for name in batch.schema.names]))


def _sql(text: str) -> sql.Composed:
    return sql.Composed([sql.SQL(text)])
