"""State of targets, seen from outside the run: which joined ones are in step with the mirror, which have rows, and
which tables they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg

from migrator.adapters.targets.postgres.ledger import HISTORY
from migrator.adapters.targets.postgres.mirror.tables import FILLED, FILLING
from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.refusal import explained
from migrator.adapters.targets.postgres.rows.merge import qualified
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.shared.remap import FilledTargets
from migrator.model.progress import TableIdentity
from migrator.model.table import TableId
from migrator.schema.acts import act_sql

_FOUND = "SELECT to_regclass(%s) IS NOT NULL"
_NUMBERS: LiteralString = """
SELECT c.relname::text, c.oid::text, COALESCE(pg_catalog.to_regclass('migrator.ledger')::oid::text, '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = ANY(%s) AND c.relkind IN ('r', 'p')
"""
_BYTES = """
SELECT COALESCE(GREATEST(pg_catalog.pg_total_relation_size(pg_catalog.to_regclass(%(name)s)),
    (SELECT sum(pg_catalog.pg_total_relation_size(relid)) FROM pg_catalog.pg_partition_tree(%(name)s))), 0)::bigint
"""
_HISTORY = act_sql(HISTORY, lambda _, kind: f"%s::{kind}")


class Statements:
    """A catalogue session's statements. Raises the driver's errors."""

    def __init__(self, connection: psycopg.Connection[Any]):
        self._connection = connection

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Runs one statement; returns how many rows it changed."""
        return self._connection.execute(statement, parameters or None).rowcount

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""
        return list(self._connection.execute(statement, parameters or None).fetchall())


def filled(settings: PostgresTarget) -> list[tuple[str, int]]:
    """The joined targets that were filled, and the segment at which each was. Raises ``ConnectionFailed``,
    ``TargetError``."""
    with catalog(settings) as connection:
        return _record(settings).segments(Statements(connection)) if _exists(connection, FILLED) else []


def holds_rows(settings: PostgresTarget, target: str) -> bool:
    """Tells whether a target table has any row. Raises ``ConnectionFailed``, ``TargetError``."""
    name = qualified(TableId(settings.server.schema, target))
    with catalog(settings) as connection:
        return connection.execute(f"SELECT FROM {name} LIMIT 1").fetchone() is not None


def table_bytes(settings: PostgresTarget, target: str) -> int:
    """Returns the bytes that a target table takes on disk, with its indexes and partitions. Raises
    ``ConnectionFailed``, ``TargetError``."""
    name = qualified(TableId(settings.server.schema, target))
    with catalog(settings) as connection:
        row = connection.execute(_BYTES, {"name": name}).fetchone()
    return int(row[0]) if row is not None else 0


def identities(settings: PostgresTarget, tables: Sequence[str]) -> dict[str, TableIdentity]:
    """Returns the tables' numbers in the catalog. Raises ``ConnectionFailed``."""
    with catalog(settings) as connection:
        rows = connection.execute(_NUMBERS, [settings.server.schema, list(tables)]).fetchall()
    return {name: TableIdentity(number, ledger) for name, number, ledger in rows}


def forget_filled(settings: PostgresTarget, target: str) -> bool:
    """Makes the run fill a target anew, with its next batch; False if it wasn't filled yet.

    Raises ``ConnectionFailed``, and ``TargetError`` when the role may not.
    """
    with catalog(settings) as connection:
        if not _exists(connection, FILLED):
            return False
        record = _record(settings, FILLING if _exists(connection, FILLING) else "")
        with record.refusals_named(psycopg.Error, explained), connection.transaction():
            return record.forget(Statements(connection), target)


def _record(settings: PostgresTarget, filling: str = "") -> FilledTargets:
    return FilledTargets(FILLED, filling, settings, _HISTORY)


def _exists(connection: psycopg.Connection[tuple[Any, ...]], name: str) -> bool:
    found = connection.execute(_FOUND, [name]).fetchone()
    return found is not None and bool(found[0])
