"""The view of what is visible now, and whether it would survive a crash of the server.

A transaction with ``synchronous_commit = off`` is visible before its commit record is on disk. A crash then forgets
it, and its id is given out again: a poll that had delivered it would take the new transaction for the old one. So a
snapshot is used only once the log is on disk up to a place taken after it. The records of all transactions that it
shows lie before that place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.postgres.change_tables.place import Place, Server, ended
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.adapters.sources.postgres.lsn import parse_lsn, without_page_header
from migrator.errors import ConnectionFailed

VIEW = """
SELECT pg_catalog.pg_current_snapshot()::text,
       pg_catalog.pg_current_wal_insert_lsn()::text,
       pg_catalog.current_setting('wal_block_size')::int8,
       pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))::int8,
       pg_catalog.pg_current_wal_flush_lsn()::text,
       (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
       pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8),
       (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000)::int8
"""
"""A question that a standby refuses (SQLSTATE 55000): it has neither insert position nor running transactions."""
FLUSHED = "SELECT pg_catalog.pg_current_wal_flush_lsn()::text"
NUDGE = "SELECT pg_catalog.pg_current_xact_id()::text"
"""An empty transaction with an id: after its commit the server soon writes its log to disk up to there. Needed only
where the end of the log is of a transaction that goes on, and nobody else commits."""


@dataclass(frozen=True, slots=True)
class View:
    """A snapshot with its place in the server's log.

    Attributes:
        server: whose it is.
        snapshot: what is visible.
        inserted: the end of the log, taken after the snapshot.
        flushed: how much of the log was on disk.
        clock_us: the server's clock, microseconds since 1970.
    """

    server: Server
    snapshot: SnapshotWitness
    inserted: int
    flushed: int
    clock_us: int

    @classmethod
    def of(cls, row: Sequence[Any]) -> View:
        """Reads a row of ``VIEW``."""
        snapshot, inserted, page_bytes, segment_bytes, flushed, system, timeline, clock_us = row
        end = without_page_header(parse_lsn(inserted), page_bytes, segment_bytes)
        server = Server(system, int(timeline, 16))
        return cls(server, SnapshotWitness.parse(snapshot), end, parse_lsn(flushed), clock_us)

    def order(self) -> int:
        """The number of transactions that ended."""
        return ended(self.snapshot)

    def place(self) -> Place:
        """The place where everything that it shows was delivered."""
        return Place(self.server, self.snapshot)


def on_disk(execute: Callable[[str], Any], view: View, until: float) -> bool:
    """Tells whether the server's log is on disk up to the view's end, waiting for it until then (monotonic seconds).

    Args:
        execute: runs a statement and returns the first column of its first row.
        view: its ``inserted`` is the end meant.
        until: when to give up for now.
    """
    looks = 0
    while parse_lsn(execute(FLUSHED)) < view.inserted:
        if time.monotonic() >= until:
            return False
        looks += 1
        if looks == _LOOKS_BEFORE_NUDGE:
            execute(NUDGE)
        time.sleep(_MOMENT_S)
    return True


def not_on_disk(address: str) -> ConnectionFailed:
    """The error for a server that doesn't write its log in time."""
    return ConnectionFailed(
        "the source doesn't write its log to disk",
        where=address,
        cause=f"not within {FLUSH_S:g} s",
        remedy="check the disk of the source; reading goes on by itself",
        retryable=True,
    )


_LOOKS_BEFORE_NUDGE = 3
_MOMENT_S = 0.01
FLUSH_S = 30.0
"""Seconds to wait for the disk where nothing else can be done meanwhile."""
