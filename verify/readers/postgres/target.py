"""The new database as the judge reads it: ledger and rows from one snapshot, every value as exact text.

Text is asked from the server itself, one rule per type (``verify.tables.compare.normalise`` lists them with
reasons), so the target's side never passes through the code that reads the source's side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psycopg import sql

from migrator.errors import VerifyError
from verify.readers.postgres.chunks import PostgresTargetChunks, as_strings
from verify.readers.postgres.ledger import PostgresLedger
from verify.readers.postgres.operators import operator_path
from verify.readers.postgres.orders import refuse_stale_orders
from verify.readers.postgres.pins import connect_postgres
from verify.readers.postgres.printed import as_printed
from verify.readers.postgres.session import PostgresSnapshot, open_snapshot, open_views
from verify.readers.snapshot import LedgerState, TargetColumnText, TargetRowsText, TargetSnapshot
from verify.settings import ServerSettings

_COLUMNS = """
WITH RECURSIVE base AS (
  SELECT oid AS declared, oid, typbasetype FROM pg_type
  UNION ALL
  SELECT base.declared, t.oid, t.typbasetype FROM base JOIN pg_type t ON t.oid = base.typbasetype
)
SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typname, a.attgenerated <> '', format_type(t.oid, -1)
FROM pg_attribute a
JOIN pg_class r ON r.oid = a.attrelid JOIN pg_namespace n ON n.oid = r.relnamespace
JOIN base ON base.declared = a.atttypid AND base.typbasetype = 0 JOIN pg_type t ON t.oid = base.oid
WHERE n.nspname = %s AND r.relname = %s AND r.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_TEXTS = {
    "date": "CASE {0} WHEN 'infinity' THEN 2147483647 WHEN '-infinity' THEN '-2147483648'::int4"
    " ELSE {0} - date '1970-01-01' END::text",
    "timestamp": "CASE {0} WHEN 'infinity' THEN 9223372036854775807"
    " WHEN '-infinity' THEN '-9223372036854775808'::int8"
    " ELSE (extract(epoch FROM {0}) * 1000000)::int8 END::text",
    "bytea": "encode({0}, 'hex')",
}
_CAST = (
    "bool",
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "varchar",
    "uuid",
    "json",
    "jsonb",
)


class PostgresTarget:
    """The new database on PostgreSQL."""

    def __init__(self, settings: ServerSettings, migration: str):
        self._settings = settings
        self._ledger = PostgresLedger(settings.server.url(), migration)

    def ledger(self) -> LedgerState | None:
        """The ledger now; None when nothing was ever applied. Raises ``VerifyError``, ``ConnectionFailed``."""
        with connect_postgres(self._settings) as connection:
            return self._ledger.read(PostgresSnapshot(connection, None, self._settings.server.url()))

    def snapshot(self, tables: Sequence[str], directory: Path) -> TargetSnapshot:
        """Reads ledger and whole tables of one read view. Raises ``VerifyError``, ``ConnectionFailed``."""
        with open_snapshot(self._settings) as view:
            ledger = self._ledger.read(view)
            found = {
                name: self._read(view, name, directory / f"target-{index}.parquet")
                for index, name in enumerate(tables)
            }
        return TargetSnapshot(ledger, found)

    @contextmanager
    def chunks(self, table: str) -> Iterator[PostgresTargetChunks]:
        """See ``verify.readers.ports.ChunkedTarget``."""
        with open_views(self._settings) as views:
            with views.view() as view:
                columns = self._columns(view, table)
                refuse_stale_orders(view, self._settings.server.schema, [table])
                path = operator_path(view, self._settings.server.schema, [table])
            views.compare_by(path)
            name = (self._settings.server.schema, table)
            yield PostgresTargetChunks(views, self._ledger, name, columns, _selected(columns), as_strings)

    def _read(self, view: PostgresSnapshot, name: str, path: Path) -> TargetRowsText:
        columns = self._columns(view, name)
        kept = [column for column in columns if not column.generated]
        query = sql.SQL("SELECT {} FROM {}").format(
            _selected(columns), sql.Identifier(self._settings.server.schema, name)
        )
        rows = view.to_parquet(query, [c.name for c in kept], path, as_strings, f"table {name}")
        return TargetRowsText(name, columns, path, rows)

    def _columns(self, view: PostgresSnapshot, name: str) -> tuple[TargetColumnText, ...]:
        rows = view.rows(_COLUMNS, (self._settings.server.schema, name))
        if not rows:
            raise VerifyError(
                f"target table {self._settings.server.schema}.{name} does not exist",
                where=self._settings.server.url(),
                remedy="bring the target's schema up to date (`migrator schema upgrade`), or correct the mapping",
            )
        return tuple(
            TargetColumnText(
                name, native, base, generated, printed=as_printed(self._settings, base, without_length)
            )
            for name, native, base, generated, without_length in rows
        )


def _selected(columns: Sequence[TargetColumnText]) -> sql.Composed:
    return sql.SQL(", ").join(_text(column) for column in columns if not column.generated)


def _text(column: TargetColumnText) -> sql.Composable:
    name = sql.Identifier(column.name)
    base = "timestamp" if column.base == "timestamptz" else column.base
    if base in _TEXTS:
        return sql.SQL(_TEXTS[base]).format(name)
    if base in _CAST:
        return sql.SQL("{}::text").format(name)
    return sql.SQL("CASE WHEN num_nulls({0}) = 0 THEN format('%s', {0}) END").format(name)
