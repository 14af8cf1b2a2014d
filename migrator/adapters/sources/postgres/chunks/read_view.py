"""The read view of a chunk: the witness of what it contains, and a place in the log behind all of that.

On a primary both come from one statement in the chunk's transaction, which takes its snapshot:

- witness: ``pg_current_snapshot()``.
- high: the WAL's insert position H, read after the snapshot. A transaction that the snapshot shows has its commit
  record written before it became visible, so that record ends at or before H.

On a standby (16 or later) snapshots list no running transactions, but visibility is the order of replay:

- witness: ``pg_last_wal_replay_lsn()`` R, read BEFORE the snapshot. It moves on after a record was replayed, so all
  commits that end at or before R are visible to a snapshot taken later.
- high: the same function, read AFTER the snapshot: R2. It isn't enough as it is. The commit that is being
replayed at
  that moment may be visible already, although R2 doesn't count it yet; it is the first record behind R2. So the log
  has to be read past R2, unless nothing behind R2 was received at all (then nothing is being replayed): on an idle
  standby there is nothing more to wait for.

Whether the server is a standby is asked before the snapshot: a standby may become a primary, never the other way
round. A view taken while that happens is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.postgres.chunks.witness import ReplayWitness, SnapshotWitness
from migrator.adapters.sources.postgres.lsn import parse_lsn, position_up_to, without_page_header
from migrator.errors import SourceError
from migrator.model.chunk import Witness
from migrator.model.position import Position

_BEFORE = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_last_wal_replay_lsn()::text"
_INSERTED = """
SELECT pg_catalog.pg_current_snapshot()::text,
       pg_catalog.pg_current_wal_insert_lsn()::text,
       pg_catalog.current_setting('wal_block_size')::int8,
       pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))::int8,
       (SELECT system_identifier::text FROM pg_catalog.pg_control_system())
"""
# Columns are evaluated from left to right: what was received is read after what was replayed.
_REPLAYED = """
SELECT pg_catalog.pg_is_in_recovery(),
       pg_catalog.pg_last_wal_replay_lsn()::text,
       pg_catalog.pg_last_wal_receive_lsn()::text,
       EXISTS (SELECT 1 FROM pg_catalog.pg_stat_wal_receiver),
       (SELECT system_identifier::text FROM pg_catalog.pg_control_system())
"""


@dataclass(frozen=True, slots=True)
class ReadView:
    """A chunk's snapshot in terms of the log that is read beside it.

    Attributes:
        witness: which of the log's transactions it contains.
        high: a place at or after all of them.
        settled: waits, once the chunk was read, until no crash of the server can undo what it contains.
    """

    witness: Witness
    high: Position
    settled: Callable[[Any], None] = lambda cursor: None


@dataclass(frozen=True, slots=True)
class Views:
    """A way to take read views beside a log.

    Attributes:
        before: called outside of a transaction before each view; what it returns is handed to ``take``.
        take: takes the snapshot of the transaction that has begun.
        beside_wal: whether the log is the server's own, and so has to be that of the same server.
    """

    before: Callable[[Any], ReplayWitness | None]
    take: Callable[[Any, ReplayWitness | None], ReadView]
    beside_wal: bool


def before_view(cursor: Any) -> ReplayWitness | None:
    """Returns, called outside of a transaction and before the view is taken: on a standby its witness, else None."""
    cursor.execute(_BEFORE)
    standby, replayed = cursor.fetchone()
    return ReplayWitness(parse_lsn(replayed or "0/0")) if standby else None


def taken_view(cursor: Any, before: ReplayWitness | None) -> ReadView:
    """Takes the snapshot of the transaction that has begun.

    Raises SourceError (retryable) when the standby was promoted meanwhile.
    """
    if before is not None:
        return ReadView(before, _replayed(cursor))
    cursor.execute(_INSERTED)
    snapshot, lsn, page_bytes, segment_bytes, system = cursor.fetchone()
    place = without_page_header(parse_lsn(lsn), page_bytes, segment_bytes)
    return ReadView(SnapshotWitness.parse(snapshot), position_up_to(place, system))


WAL_VIEWS = Views(before_view, taken_view, beside_wal=True)
"""Beside the server's own log."""


def present_position(cursor: Any) -> Position:
    """A place at or behind everything that is visible now, outside of a transaction."""
    return taken_view(cursor, before_view(cursor)).high


def _replayed(cursor: Any) -> Position:
    cursor.execute(_REPLAYED)
    standby, replayed, received, receiving, system = cursor.fetchone()
    if not standby or replayed is None:
        raise SourceError("the source was promoted while rows were read", retryable=True)
    up_to = position_up_to(parse_lsn(replayed), system)
    if receiving and received == replayed:
        return up_to
    return Position(up_to.order + 1, up_to.token)
