"""Proves that the log at a place is the log that was read up to there.

A server that is put back to an earlier state, or whose log was reset, gives the numbers of its GTIDs out
again. So a place tells of the last transaction before it: its GTID, and the time that the log has of it.
Before reading goes on that transaction is read once more, over a stream of its own: the log is asked for
without it.

MySQL's time is that of the first commit, in microseconds. MariaDB has whole seconds: whoever puts a server back and
writes to it within one second isn't found out by the last transaction alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.binlog.events.events import GTIDS, HEARTBEATS, Event, EventParser
from migrator.adapters.sources.binlog.wire.packet_stream import PacketStream
from migrator.errors import ConnectionFailed, GapError
from migrator.model.position import Position


@dataclass(frozen=True, slots=True)
class Proof:
    """The last transaction before a place.

    Attributes:
        gtid: as the engine writes it.
        at: when it was committed, in the engine's unit (see the module).
        before: MariaDB: the GTID that its domain had before it; empty where it is the first.
    """

    gtid: str
    at: int
    before: str = ""

    def text(self) -> str:
        """Returns the proof as a token's text; GTIDs have no character that JSON escapes."""
        return proof_text(self.gtid, self.at, self.before)


def proof_text(gtid: str, at: int, before: str = "") -> str:
    """``Proof.text`` without a ``Proof``: each transaction has one."""
    return f', "last": "{gtid}", "at": {at}' + (f', "before": "{before}"' if before else "")


def proof_of(parts: Mapping[str, Any]) -> Proof | None:
    """Reads the proof from a token's document; None in earlier versions', and before the first transaction.

    Raises ``TypeError`` and ``ValueError`` for what isn't ours.
    """
    last = parts.get("last")
    return None if last is None else Proof(str(last), int(parts["at"]), str(parts.get("before", "")))


def proof_at(position: Position) -> Proof | None:
    """The same of a position."""
    return proof_of(json.loads(position.token))


def telling(position: Position, proof: Proof) -> Position:
    """The position, telling of this transaction."""
    parts = json.loads(position.token) | {"last": proof.gtid, "at": proof.at}
    return Position(position.order, json.dumps(parts | ({"before": proof.before} if proof.before else {})))


def gtid_events(stream: PacketStream, silence_s: float) -> Iterator[Event]:
    """The events that begin transactions; see ``events_to_end``."""
    return (event for event in events_to_end(stream, silence_s) if event.type in GTIDS)


def events_to_end(stream: PacketStream, silence_s: float) -> Generator[Event]:
    """The log's events up to its present end. Closes the stream.

    MySQL sends a heartbeat in place of the transactions that it passes over, right before the one that is
    asked for. So the end is where two of them in a row name one place: those for what is passed over go
    forward.

    Raises what the stream raises.
    """
    parser = EventParser()
    beat: tuple[bytes, int] | None = None
    try:
        raw, heard_at = stream.take_first(), time.monotonic()
        while True:
            for packet in raw:
                event = parser.parse(packet)
                before, beat = beat, (event.body, event.end) if event.type in HEARTBEATS else None
                if beat is not None and beat == before:  # there is no more
                    return
                yield event
            raw = stream.events(silence_s)
            if raw:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at >= silence_s:
                raise ConnectionFailed("the source log can't be read", cause="nothing came", retryable=True)
    finally:
        stream.close()


def another_log(where: str, known: Proof, found: Proof | None) -> GapError:
    """The source has another history than the one that was read."""
    there = "it isn't there" if found is None else f"its time there is {found.at}"
    return GapError(
        "the source's log isn't the log that was read",
        where=where,
        cause=f"the last transaction read was GTID {known.gtid} of time {known.at}; {there}: the source was put back"
        " to an earlier state or its log was reset, and written to since, or this is a copy of it",
        remedy="connect to the server read before, else start the migration anew"
        " (docs/how-to/start-anew.md): the target may have what the restore took back",
    )


def unproven_log(where: str, known: Proof) -> GapError:
    """The file with the last transaction read was purged; nothing after it is missing."""
    return GapError(
        "the source's log can't be shown to be the log that was read",
        where=where,
        cause=f"the last transaction read, GTID {known.gtid} of time {known.at}, was purged from it, though nothing"
        " after it: a server that was put back to an earlier state looks the same",
        remedy="if this is the server read before, and it wasn't restored or reset since, once: migrator run"
        " --unproven-log --reason '...'; else start the migration anew (docs/how-to/start-anew.md)",
    )
