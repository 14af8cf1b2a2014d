"""Remains of a migration at a PostgreSQL source: its slot, its publication, its row among the watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from migrator.adapters.sources.postgres.change_tables.layout import SCHEMA as CHANGE_TABLES
from migrator.adapters.sources.postgres.connection import RECOVERY, connect, query_failure
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.whole_images import name_of
from migrator.errors import MigratorError, SourceError
from migrator.ports.remains import Found, Kind, Left

_SLOT = """
SELECT coalesce(plugin::text, 'none'), coalesce(database, 'none'), database = pg_catalog.current_database(),
       active_pid::text, to_jsonb(s) ->> 'synced' = 'true' AND pg_catalog.pg_is_in_recovery(),
       (SELECT rolreplication OR rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
FROM pg_catalog.pg_replication_slots s WHERE slot_name = $1
"""
_PUBLICATION = """
SELECT r.rolname::text, pg_catalog.pg_has_role(r.oid, 'USAGE')
FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_roles r ON r.oid = p.pubowner WHERE p.pubname = $1
"""
_MARKS = """
SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.has_table_privilege(c.oid, 'DELETE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'migrator' AND c.relname = 'watermark'
"""
_MARK = "SELECT 1 FROM migrator.watermark WHERE migration = $1"
_CHANGE_TABLES = "SELECT pg_catalog.to_regnamespace($1) IS NOT NULL"
_GONE = ("42704", "42P01", "3F000")
"""The SQLSTATEs of a slot or publication, table, schema that isn't there."""
_IN_USE = "55006"


class PostgresSourceRemains:
    """``ports.remains.Remains`` at a PostgreSQL source. Tables of the application are never touched."""

    def __init__(self, source: PostgresSource):
        self._source = source

    def found(self) -> Found:
        """See the port. Raises ``SourceError`` for a slot that somebody reads, or that can't be dropped here."""
        with connect(self._source, "reset") as connection:
            try:
                standby = bool(connection.execute(RECOVERY).fetchone()[0])  # type: ignore[index]
                return self._found(connection, standby)
            except psycopg.Error as error:
                raise query_failure(self._source, "the source can't be asked what is left", error) from error

    def remove(self, lefts: Sequence[Left]) -> None:
        """See the port."""
        for left in lefts:
            statement, parameters = self._statement(left)
            with connect(self._source, "reset") as connection:
                try:
                    connection.execute(statement, parameters)
                except psycopg.Error as error:
                    if error.sqlstate not in _GONE:
                        raise self._refused(left, error) from error

    def _found(self, connection: psycopg.Connection[Any], standby: bool) -> Found:
        slot, name = self._source.slot, name_of(self._source.slot)
        left, kept = [], []
        for plugin, database, ours, reader, copied, may in connection.execute(_SLOT, [slot]).fetchall():
            if not ours or plugin != "pgoutput":
                kept.append(
                    f"replication slot {slot}: it isn't this migration's (plugin {plugin}, database {database})"
                )
                continue
            self._check(reader, bool(copied), bool(may))
            left.append(Left(Kind.SLOT, slot, f"replication slot {slot}"))
        for owner, may in connection.execute(_PUBLICATION, [slot]).fetchall():
            if standby:
                kept.append(f"publication {slot}: this is a standby. On the primary: DROP PUBLICATION {name}")
            elif not may:
                kept.append(f"publication {slot}, which is {owner}'s: DROP PUBLICATION {name}")
            else:
                left.append(Left(Kind.PUBLICATION, slot, f"publication {slot}"))
        self._marks(connection, standby, left, kept)
        if connection.execute(_CHANGE_TABLES, [CHANGE_TABLES]).fetchone() == (True,):
            kept.append(
                f"change tables and their triggers, which the tables' owner made for whoever polls them:"
                f" DROP SCHEMA {CHANGE_TABLES} CASCADE"
            )
        if left:
            kept.append("REPLICA IDENTITY of the tables, and grants")
        return Found(f"source {self._source.server.url()}", tuple(left), tuple(kept))

    def _marks(
        self, connection: psycopg.Connection[Any], standby: bool, left: list[Left], kept: list[str]
    ) -> None:
        for may_read, may_delete in connection.execute(_MARKS).fetchall():
            if not may_read or not connection.execute(_MARK, [self._source.migration]).fetchall():
                continue
            if may_delete and not standby:
                left.append(Left(Kind.WATERMARK, "watermark", "the watermark row in migrator.watermark"))
            else:
                kept.append(
                    "the watermark row: DELETE FROM migrator.watermark WHERE migration ="
                    f" '{self._source.migration}'"
                )

    def _check(self, reader: str | None, copied: bool, may: bool) -> None:
        slot, where = self._source.slot, self._source.server.address
        if reader:
            raise _read(slot, where, f"the server's process {reader} reads it")
        if copied:
            raise SourceError(
                f"replication slot {slot!r} is a copy that a standby keeps",
                where=where,
                cause="only the primary can drop it, and its copies go by themselves then",
                remedy="let [source] host and port lead to the primary, then repeat `migrator reset`",
            )
        if not may:
            raise SourceError(
                f"replication slot {slot!r} can't be dropped",
                where=where,
                cause=f"role {self._source.server.user} has no REPLICATION",
                remedy=f"as a superuser: SELECT pg_drop_replication_slot('{slot}'); then repeat `migrator reset`",
            )

    def _statement(self, left: Left) -> tuple[Any, list[str]]:
        if left.kind is Kind.SLOT:
            return "SELECT pg_catalog.pg_drop_replication_slot($1)", [left.name]
        if left.kind is Kind.PUBLICATION:
            return f"DROP PUBLICATION IF EXISTS {name_of(left.name)}", []
        return "DELETE FROM migrator.watermark WHERE migration = $1", [self._source.migration]

    def _refused(self, left: Left, error: psycopg.Error) -> MigratorError:
        if left.kind is Kind.SLOT and error.sqlstate == _IN_USE:
            return _read(left.name, self._source.server.address, str(error).strip())
        if error.sqlstate != "42501":
            return query_failure(self._source, f"{left.said} can't be removed", error)
        by_hand = {
            Kind.SLOT: f"SELECT pg_drop_replication_slot('{left.name}')",
            Kind.PUBLICATION: f"DROP PUBLICATION {name_of(left.name)}",
            Kind.WATERMARK: f"DELETE FROM migrator.watermark WHERE migration = '{self._source.migration}'",
        }
        return SourceError(
            f"{left.said} can't be removed",
            where=self._source.server.address,
            cause=" ".join(str(error).split()),
            remedy=f"with more rights: {by_hand[left.kind]}; then repeat `migrator reset`",
        )


def _read(slot: str, where: str, cause: str) -> SourceError:
    return SourceError(
        f"replication slot {slot!r} is in use by another session",
        where=where,
        cause=cause,
        remedy="stop that process, then repeat `migrator reset`; a dead session goes after wal_sender_timeout",
    )
