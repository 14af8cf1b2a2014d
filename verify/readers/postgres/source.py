"""Reads PostgreSQL source tables in the logical types of the event stream, from one snapshot.

The type rules are written here a second time on purpose: the judge must not inherit a wrong type from capture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from migrator.connections.postgres.constraints import NOT_NULL
from migrator.errors import VerifyError
from migrator.model.table import Column, TableId, TableSchema
from verify.readers.pending import Pending, PendingAnswer, pending_in_slot
from verify.readers.postgres.chunks import PostgresSourceChunks
from verify.readers.postgres.operators import operator_path
from verify.readers.postgres.orders import refuse_stale_orders
from verify.readers.postgres.pins import connect_postgres
from verify.readers.postgres.session import Convert, PostgresSnapshot, open_snapshot, open_views
from verify.readers.postgres.tables import PostgresSourceTables
from verify.readers.snapshot import (
    LedgerState,
    LogPlace,
    SourceSnapshot,
    SourceTable,
    Viewed,
    unheard,
)
from verify.settings import ServerSettings

_NATIVE = {
    "bool": "bool",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "float4": "float32",
    "float8": "float64",
    "bytea": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")
_DECIMAL_DIGITS_MAX = 38
_ARROW = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}

# Generated columns don't travel in the log, so a mapping never sees them and neither must the judge. From
# PostgreSQL 18 on the log has stored ones; what triggers capture hasn't. A domain is what it is made of, with
# its own modifier.
_COLUMNS: LiteralString = f"""
WITH RECURSIVE made AS (
  SELECT a.attnum, a.attname, {NOT_NULL} AS filled, a.attcollation, a.atttypid AS type, a.atttypmod AS modifier
  FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid JOIN pg_namespace n ON n.oid = r.relnamespace
  WHERE n.nspname = %s AND r.relname = %s AND r.relkind IN ('r', 'p')
    AND a.attnum > 0 AND NOT a.attisdropped
    AND (a.attgenerated = '' OR a.attgenerated = 's' AND %s AND current_setting('server_version_num')::int4 >=
    180000)
  UNION ALL
  SELECT m.attnum, m.attname, m.filled, m.attcollation, t.typbasetype, t.typtypmod
  FROM made m JOIN pg_type t ON t.oid = m.type WHERE t.typbasetype <> 0
)
SELECT m.attname, t.typname, format_type(m.type, m.modifier), m.filled, coalesce(c.collname, '')
FROM made m JOIN pg_type t ON t.oid = m.type AND t.typbasetype = 0
LEFT JOIN pg_collation c ON c.oid = m.attcollation
ORDER BY m.attnum
"""
# The log is read up to the end of its last record, but the insert position lies after the header of a fresh page:
# on an idle server the pipeline could never be said to have reached it.
# On a standby the commit that is being replayed may be visible before the place of replay counts it, so everything
# visible lies behind that place by one record at most; nothing does where all that was received is replayed.
_PLACE: LiteralString = """
WITH standby AS MATERIALIZED (
  SELECT pg_is_in_recovery() AS yes
), place AS (
  SELECT (lsn - '0/0'::pg_lsn)::int8 AS byte, lsn::text AS text,
         pg_size_bytes(current_setting('wal_segment_size')) AS segment,
         current_setting('wal_block_size')::int8 AS page
  FROM pg_current_wal_insert_lsn() AS lsn WHERE NOT (SELECT yes FROM standby)
), header AS (
  SELECT *, CASE WHEN byte % segment < page THEN 40 ELSE 24 END AS header FROM place
)
SELECT byte - CASE WHEN byte % page = header THEN header ELSE 0 END, text FROM header
UNION ALL
SELECT (lsn - '0/0'::pg_lsn)::int8
         + CASE WHEN pg_last_wal_receive_lsn() = lsn AND EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 0 ELSE
         1 END,
       lsn::text
FROM pg_last_wal_replay_lsn() AS lsn WHERE (SELECT yes FROM standby)
"""
_KEY = """
SELECT a.attname FROM pg_index i
JOIN pg_class r ON r.oid = i.indrelid JOIN pg_namespace n ON n.oid = r.relnamespace
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE n.nspname = %s AND r.relname = %s AND i.indisprimary ORDER BY k.place
"""


class PostgresSource:
    """The old database on PostgreSQL. ``migration`` names slot and publication of the running pipeline."""

    def __init__(self, settings: ServerSettings, migration: str):
        self._settings = settings
        self._migration = migration

    def snapshot(self, tables: Sequence[str], directory: Path, viewed: Viewed = unheard) -> SourceSnapshot:
        """See ``verify.readers.source.SourceReader``.

        The insert position is read outside the view, before and after it is taken: a transaction that the view
        contains has written its commit record before it became visible, so it lies at or before ``high``.
        """
        low = self.position()
        with open_snapshot(self._settings) as view:
            high = self.position()
            viewed(high)
            found = {
                name: self._read(view, name, directory / f"source-{index}.parquet")
                for index, name in enumerate(tables)
            }
        return SourceSnapshot(low, high, found)

    def position(self) -> LogPlace:
        """The log's end now, as the order of "every commit record that ends at or before it": one byte less."""
        with connect_postgres(self._settings) as connection:
            return self._place(connection)

    def _place(self, connection: psycopg.Connection[Any]) -> LogPlace:
        try:
            return self._end_of_log(connection)
        except psycopg.Error as error:
            raise VerifyError(
                "the source's log position can't be read",
                where=self._settings.server.url(),
                cause=str(error).strip(),
                remedy="start again; if it repeats, verify against the primary server",
            ) from error

    def _end_of_log(self, connection: psycopg.Connection[Any]) -> LogPlace:
        return place_in(connection)

    @contextmanager
    def chunks(self, table: str) -> Iterator[PostgresSourceChunks]:
        """See ``verify.readers.ports.ChunkedSource``."""
        with open_views(self._settings) as views:
            with views.view() as view:
                schema = reflect_table(view, self._settings, table)
                refuse_stale_orders(view, self._settings.server.schema, [table])
                path = operator_path(view, self._settings.server.schema, [table])
            views.compare_by(path)
            yield PostgresSourceChunks(views, lambda: self._place(views.between()), schema, *_reading(schema))

    @contextmanager
    def tables(self, names: Sequence[str]) -> Iterator[PostgresSourceTables]:
        """See ``verify.readers.ports.ChunkedSource``."""
        with open_views(self._settings) as views:
            with views.view() as view:
                schemas = {name: reflect_table(view, self._settings, name) for name in names}
                refuse_stale_orders(view, self._settings.server.schema, names)
                path = operator_path(view, self._settings.server.schema, names)
            views.compare_by(path)
            yield PostgresSourceTables(views, lambda: self._place(views.between()), schemas, _reading)

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Sequence[str]) -> Pending:
        """Tells whether the log holds row changes of ``tables`` after the ledger's position, up to ``upto``."""
        if ledger.order >= upto.order:
            return Pending(PendingAnswer.NO, "the ledger has passed this place in the log")
        with connect_postgres(self._settings) as connection:
            wanted = {(self._settings.server.schema, name) for name in tables}
            return pending_in_slot(connection, f"migrator_{self._migration}", ledger, upto, wanted)

    def _read(self, view: PostgresSnapshot, name: str, path: Path) -> SourceTable:
        schema = reflect_table(view, self._settings, name)
        query = sql.SQL("SELECT {} FROM {}").format(
            _selected(schema), sql.Identifier(schema.id.schema, schema.id.name)
        )
        rows = view.to_parquet(
            query, schema.names(), path, lambda batch: _convert(schema, batch), f"table {schema.id}"
        )
        return SourceTable(schema, path, rows)


def place_in(connection: psycopg.Connection[Any]) -> LogPlace:
    """See ``PostgresSource.position``; the connection may be in any transaction. Raises ``psycopg.Error``."""
    row = connection.execute(_PLACE).fetchone()
    assert row is not None
    return LogPlace(int(row[0]) - 1, str(row[1]))


def reflect_table(view: PostgresSnapshot, settings: ServerSettings, name: str) -> TableSchema:
    """Columns with logical types, and the primary key. Raises ``VerifyError`` when there is no such table."""
    table, as_text = TableId(settings.server.schema, name), settings.text_columns.get(name, ())
    found = view.rows(_COLUMNS, (table.schema, table.name, not settings.change_tables))
    columns = tuple(
        Column(
            column,
            "string" if column in as_text else logical_type(base, declared),
            not not_null,
            declared,
            collation,
        )
        for column, base, declared, not_null, collation in found
    )
    if not columns:
        raise VerifyError(
            f"source table {table} does not exist",
            where=str(table),
            remedy="correct the parameter of the mapping function, or grant USAGE on the schema",
        )
    key = tuple(name for (name,) in view.rows(_KEY, (table.schema, table.name)))
    return TableSchema(table, columns, key)


def logical_type(base: str, declared: str) -> str:
    """The logical type of a PostgreSQL type: native where exact, else ``string`` with the server's text.

    Args:
        base: name in ``pg_type``.
        declared: with modifiers, as ``format_type`` prints it.
    """
    found = _NUMERIC.fullmatch(declared)
    if found:
        precision, scale = int(found[1]), int(found[2])
        exact = precision <= _DECIMAL_DIGITS_MAX and 0 <= scale <= precision
        return f"decimal({precision},{scale})" if exact else "string"
    return _NATIVE.get(base, "string")


def _reading(schema: TableSchema) -> tuple[sql.Composed, Convert]:
    """Returns the select list of a table, and the function that converts its batches to the logical types."""
    return _selected(schema), lambda batch: _convert(schema, batch)


def _selected(schema: TableSchema) -> sql.Composed:
    return sql.SQL(", ").join(_expression(column) for column in schema.columns)


def _expression(column: Column) -> sql.Composable:
    """The column as ADBC delivers it without loss: extremes of time as numbers, everything else as itself or
    text."""
    name = sql.Identifier(column.name)
    if column.type == "date":
        return sql.SQL(
            "CASE {0} WHEN 'infinity' THEN 2147483647 WHEN '-infinity' THEN '-2147483648'::int4"
            " ELSE {0} - date '1970-01-01' END"
        ).format(name)
    if column.type in ("timestamp", "timestamptz"):
        return sql.SQL(
            "CASE {0} WHEN 'infinity' THEN 9223372036854775807 WHEN '-infinity' THEN '-9223372036854775808'::int8"
            " ELSE (extract(epoch FROM {0}) * 1000000)::int8 END"
        ).format(name)
    if column.decimal() is not None:
        return sql.SQL("{}::text").format(name)
    if column.type == "string":
        return text_expression(name, column.source_type)
    return name


def text_expression(name: sql.Identifier, declared: str) -> sql.Composable:
    """A value as its type's output function prints it.

    A cast to text is not always that: ``inet`` gains a mask, ``character(n)`` loses its padding. ``format``
    calls the output function, but turns NULL into an empty string, hence the CASE.
    """
    if declared.split("(")[0] in ("text", "character varying", "name", "numeric"):
        return sql.SQL("{}::text").format(name)
    return sql.SQL("CASE WHEN num_nulls({0}) = 0 THEN format('%s', {0}) END").format(name)


def _convert(schema: TableSchema, batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [_cast(column, batch.column(index)) for index, column in enumerate(schema.columns)]
    return pa.RecordBatch.from_arrays(arrays, names=list(schema.names()))


def _cast(column: Column, values: Any) -> pa.Array:
    decimal = column.decimal()
    wanted = pa.decimal128(*decimal) if decimal else _ARROW[column.type]
    try:
        return values if values.type == wanted else pc.cast(values, wanted)
    except pa.ArrowInvalid as error:
        raise VerifyError(
            f"column {column.name} holds a value that its logical type {column.type} can't represent",
            where=f"{column.name} {column.source_type}",
            cause=str(error).splitlines()[0],
            remedy="correct the value in the source (NaN in a numeric column, for instance)",
        ) from error
