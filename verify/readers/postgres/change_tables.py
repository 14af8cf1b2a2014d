"""Reads a PostgreSQL source whose changes are captured by triggers: its places are snapshots, not LSNs.

Rows and types are read as from any PostgreSQL source. What differs is where the source stands, and how to find out
whether changes wait: both are written here a second time, without the capture's code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql

from verify.readers.pending import Pending, PendingAnswer
from verify.readers.postgres.pins import connect_postgres
from verify.readers.postgres.source import PostgresSource
from verify.readers.snapshot import LedgerState, LogPlace

_SCHEMA = "migrator_cdc"
_FORGOTTEN = f"SELECT below <= pg_snapshot_xmin(%s::pg_snapshot) FROM {_SCHEMA}.forgotten"
_WAITING = """
SELECT EXISTS (SELECT 1 FROM {table} WHERE "__$start_lsn" >= pg_snapshot_xmin(%(at)s::pg_snapshot)
               AND NOT pg_visible_in_snapshot("__$start_lsn", %(at)s::pg_snapshot))
"""
# Of two snapshots of a primary one shows whatever the other does; the larger number says which.
_PLACE = """
SELECT 2 * (pg_snapshot_xmax(s)::text::int8 - (SELECT count(*) FROM pg_snapshot_xip(s))), s::text
FROM pg_current_snapshot() AS s
"""


class ChangeTableSource(PostgresSource):
    """The old database on PostgreSQL, captured by triggers."""

    def _end_of_log(self, connection: psycopg.Connection[Any]) -> LogPlace:
        """Twice the number of transaction ids that ended, as the pipeline counts its positions."""
        return snapshot_place(connection)

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Sequence[str]) -> Pending:
        """Tells whether change tables hold rows that the ledger's snapshot doesn't show."""
        if ledger.order >= upto.order:
            return Pending(PendingAnswer.NO, "the ledger has passed this snapshot")
        try:
            at = str(json.loads(ledger.token)["at"])
        except (ValueError, KeyError, TypeError):
            return Pending(PendingAnswer.UNKNOWN, "the ledger's position holds no snapshot")
        with connect_postgres(self._settings) as connection:
            try:
                return self._waiting(connection, at, tables)
            except psycopg.Error as error:
                return Pending(
                    PendingAnswer.UNKNOWN,
                    f"change tables can't be read: {str(error).strip().splitlines()[0]}",
                )

    def _waiting(self, connection: psycopg.Connection[Any], at: str, tables: Sequence[str]) -> Pending:
        for name in tables:
            changes = f"{self._settings.server.schema}_{name}_CT"
            table = sql.Identifier(_SCHEMA, changes)
            found = connection.execute(sql.SQL(_WAITING).format(table=table), {"at": at}).fetchone()
            if found is not None and found[0]:
                return Pending(PendingAnswer.YES, f"{_SCHEMA}.{changes} holds changes that were not applied")
        kept = connection.execute(_FORGOTTEN, (at,)).fetchone()  # after the rows: they may go in between
        if kept is None or not kept[0]:
            return Pending(PendingAnswer.UNKNOWN, "changes after the ledger's position were deleted already")
        return Pending(
            PendingAnswer.NO, "change tables hold no change of these tables after the ledger's position"
        )


def snapshot_place(connection: psycopg.Connection[Any]) -> LogPlace:
    """The place of the connection's snapshot. Raises ``psycopg.Error``."""
    row = connection.execute(_PLACE).fetchone()
    assert row is not None
    return LogPlace(int(row[0]), str(row[1]))
