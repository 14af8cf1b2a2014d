"""Reads a PostgreSQL server's log through a slot and a publication of the recorder's own, by SQL functions.

``pg_logical_slot_peek_binary_changes`` reads; ``pg_replication_slot_advance`` forgets, once everything that was read
is kept. Because these are two steps, nothing is lost if the server is killed between them. A transaction that comes
twice is recognised by the place of its commit record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, Protocol

import psycopg
from psycopg import sql

from migrator.errors import ConnectionFailed, VerifyError
from migrator.run.failure import Stopping
from scenarios.database import Database
from scenarios.recording.pgoutput import Begin, Commit, Relation, Row, Truncate, decode

_EVERY_S = 1.0
_RETRY_S = 0.2
_MESSAGES_A_PEEK = 100_000
_FINAL_TRIES = 50
_GENERATED: LiteralString = " WITH (publish_generated_columns = stored)"


class TransactionTaker(Protocol):
    """A receiver of the transactions, in commit order."""

    def begin(self, commit_lsn: int, committed_at_us: int) -> None:
        """A committed transaction begins; the commit record starts at ``commit_lsn``, the time is since 1970."""

    def relation(self, relation: Relation) -> None:
        """Describes a table before its first row, and again whenever it has changed."""

    def row(self, row: Row) -> None:
        """One row change."""

    def truncate(self, oid: int) -> None:
        """A table was emptied."""

    def commit(self) -> None:
        """The transaction ends."""

    def abort(self) -> None:
        """Reading broke off. Forgets the open transaction, which comes again."""


@dataclass(frozen=True, slots=True)
class Published:
    """A table of the publication."""

    schema: str
    table: str


class SlotRecorder:
    """A thread that reads a slot all the time and hands transactions to a taker.

    Args:
        database: of the slot.
        name: of slot and publication.
        tables: what to publish; they must exist.
        taker: gets the transactions in this recorder's thread.
        failover: a standby may take the slot over.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        tables: Sequence[Published],
        taker: TransactionTaker,
        failover: bool = False,
    ):
        self._database = database
        self._name = name
        self._tables = tables
        self._taker = taker
        self._failover = failover
        self._last_lsn = 0
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._stopping = Stopping()

    def start(self) -> None:
        """Makes publication and slot, and starts reading. Raises ``VerifyError`` where the server doesn't let
        us."""
        try:
            with self._database.postgres(autocommit=True) as connection:
                tables = sql.SQL(", ").join(
                    sql.Identifier(published.schema, published.table) for published in self._tables
                )
                name = sql.Identifier(self._name)
                # Else the server refuses the application's own UPDATE and DELETE on a table that computes columns.
                whole: LiteralString = "" if connection.info.server_version < 180_000 else _GENERATED
                statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}{}")
                connection.execute(statement.format(name, tables, sql.SQL(whole)))
                lasting = sql.SQL(", failover => true" if self._failover else "")
                created = sql.SQL("SELECT pg_create_logical_replication_slot(%s, 'pgoutput'{})").format(
                    lasting
                )
                connection.execute(created, [self._name])
        except psycopg.Error as error:
            raise VerifyError(
                "the recorder can't read this server's log",
                where=f"{self._database.host}:{self._database.port}/{self._database.database}",
                cause=str(error).strip(),
            ) from error
        self._thread = self._stopping.thread(self._name, self._run)

    def stop(self) -> None:
        """Reads what is committed by now and ends. Raises what made recording impossible."""
        self._stopping.request()
        self._thread.join()
        try:
            self._stopping.raise_failure()
            self._read_to_end()
        finally:
            self._close()

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            try:
                self._read()
            except (psycopg.OperationalError, ConnectionFailed):  # a server that a fault has stopped
                self._broken()

    def _read_to_end(self) -> None:
        for attempt in range(_FINAL_TRIES):
            try:
                # An asynchronous commit may not be flushed; a later commit that is flushed flushes it as well.
                self._connected().execute("SELECT pg_logical_emit_message(true, 'scenario', 'end', true)")
                while self._read():
                    continue
                return
            except (psycopg.OperationalError, ConnectionFailed) as error:
                self._broken()
                if attempt == _FINAL_TRIES - 1:
                    raise VerifyError(
                        "the recorder can't read the log to its end", cause=str(error).strip()
                    ) from error
            Stopping().wait(_RETRY_S)

    def _read(self) -> int:
        """Reads once; returns how many transactions were new."""
        connection = self._connected()
        found = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        flushed = _lsn(found[0]) if found else 0
        messages = transactions = end_lsn = begun = 0
        skipping = False
        with connection.cursor() as cursor:
            rows = cursor.stream(
                "SELECT data FROM pg_logical_slot_peek_binary_changes(%s, NULL, %s,"
                " 'proto_version', '1', 'publication_names', %s)",
                [self._name, _MESSAGES_A_PEEK, self._name],
                binary=True,
            )
            for (data,) in rows:
                messages += 1
                message = decode(data)
                if isinstance(message, Begin):
                    skipping = message.commit_lsn <= self._last_lsn
                    begun = message.commit_lsn
                    if not skipping:
                        self._taker.begin(message.commit_lsn, message.committed_at_us)
                elif isinstance(message, Commit):
                    end_lsn = message.end_lsn
                    if not skipping:
                        self._taker.commit()
                        self._last_lsn = begun
                        transactions += 1
                elif isinstance(message, Relation):
                    self._taker.relation(message)
                elif not skipping:
                    self._change(message)
        if messages < _MESSAGES_A_PEEK:
            end_lsn = max(end_lsn, flushed)
        if end_lsn:
            connection.execute(
                "SELECT pg_replication_slot_advance(slot_name, greatest(%s::pg_lsn, confirmed_flush_lsn))"
                " FROM pg_replication_slots WHERE slot_name = %s",
                [_lsn_text(end_lsn), self._name],
            )
        return transactions

    def _change(self, message: Row | Truncate | None) -> None:
        if isinstance(message, Row):
            self._taker.row(message)
        elif isinstance(message, Truncate):
            for oid in message.oids:
                self._taker.truncate(oid)

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None:
            self._connection = self._database.postgres(autocommit=True)
            # Each read would leave six lines in the server's log, which people read when something went wrong.
            self._connection.execute("SET log_min_messages = fatal")
        return self._connection

    def _broken(self) -> None:
        self._taker.abort()
        self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def _lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
