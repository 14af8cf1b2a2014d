"""Does the source's log hold row changes that the target has not applied yet?

Asked when the ledger stands still: then either the pipeline is stopped, or there is nothing to do. Only a
*no* lets a difference count at once. Everything here reads; nothing is consumed from the pipeline's slot.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any

import psycopg

from verify.readers.snapshot import LedgerState, LogPlace

_PEEK_LIMITS_ROWS = (20_000, 1_000_000)
"""Log messages looked at; the second only where the first were all of transactions that the target has."""
_HEAD_BYTES = 512
_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class PendingAnswer(Enum):
    """The answers to whether changes wait in the log."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Pending:
    """The answer and how it was found, in words for the report.

    ``stopped`` says that the pipeline surely isn't running, so waiting for it is of no use.
    """

    answer: PendingAnswer
    detail: str
    stopped: bool = False


def pending_in_slot(
    connection: psycopg.Connection[tuple[Any, ...]],
    name: str,
    ledger: LedgerState,
    upto: LogPlace,
    tables: set[tuple[str, str]],
) -> Pending:
    """Peeks the pipeline's own slot, where it is free, for row changes between the ledger's position and ``upto``.

    Args:
        connection: to the source.
        name: of the slot and of the publication.
        ledger: its order is the LSN of the last applied commit record, its token tells where reading resumes.
        upto: end of the source's log when the source was read.
        tables: schema and name of the tables that matter.
    """
    slots = connection.execute(
        "SELECT active, confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
        " AND database = current_database()",
        (name,),
    ).fetchall()
    if not slots:
        return Pending(PendingAnswer.UNKNOWN, f"the source has no replication slot {name}", True)
    active, confirmed = slots[0]
    if active:
        return Pending(PendingAnswer.UNKNOWN, f"slot {name} is in use, the pipeline is running")
    resume = resume_lsn(ledger.token)
    if confirmed is not None and lsn_number(confirmed) > max(ledger.order, resume or 0):
        return Pending(
            PendingAnswer.UNKNOWN,
            f"slot {name} stands at {confirmed}, after the ledger: the event log may hold what the target lacks",
            True,
        )
    try:
        return _peek(connection, name, ledger, upto, tables)
    except psycopg.Error as error:
        return Pending(
            PendingAnswer.UNKNOWN, f"slot {name} can't be peeked: {str(error).strip().splitlines()[0]}", True
        )


def _peek(
    connection: psycopg.Connection[tuple[Any, ...]],
    name: str,
    ledger: LedgerState,
    upto: LogPlace,
    tables: set[tuple[str, str]],
) -> Pending:
    for limit in _PEEK_LIMITS_ROWS:
        walk = PgoutputWalk(ledger.order, tables)
        rows, changed = _walk(connection, name, upto, limit, walk)
        if changed is not None:
            return Pending(
                PendingAnswer.YES, f"the log holds changes of {changed} that were not applied", True
            )
        if rows < limit:
            return Pending(
                PendingAnswer.NO, "the log holds no change of these tables after the ledger's position", True
            )
        # A pipeline that was killed tells the slot late how far it was: a dump's worth may lie before the ledger.
        if walk.beyond:
            break
    return Pending(PendingAnswer.UNKNOWN, f"more than {limit} log messages wait in slot {name}", True)


def _walk(
    connection: psycopg.Connection[tuple[Any, ...]],
    name: str,
    upto: LogPlace,
    limit: int,
    walk: PgoutputWalk,
) -> tuple[int, str | None]:
    """Peeks so many messages, and a transaction's rest; ends at a change that matters and names its table."""
    rows = 0
    with connection.transaction(), connection.cursor("migrator_verify_peek") as cursor:
        cursor.itersize = 2000
        cursor.execute(
            "SELECT substring(data FOR %s) FROM pg_logical_slot_peek_binary_changes(%s, %s::pg_lsn, %s,"
            " 'proto_version', '1', 'publication_names', %s)",
            (_HEAD_BYTES, name, upto.state, limit, name),
        )
        for (data,) in cursor:
            rows += 1
            changed = walk.see(bytes(data))
            if changed is not None:
                return rows, changed
    return rows, None


class PgoutputWalk:
    """Follows pgoutput messages (protocol version 1) just far enough to see which table an applied-after
    change hits.

    PostgreSQL documentation, "Logical Replication Message Formats". Only the first bytes of a message are needed.
    """

    def __init__(self, applied: int, tables: set[tuple[str, str]]):
        self._applied = applied
        self._tables = tables
        self._relations: dict[int, tuple[str, str]] = {}
        self._commit = 0

    @property
    def beyond(self) -> bool:
        """Returns whether the last transaction seen isn't applied yet; transactions come in the order of their
        commits."""
        return self._commit > self._applied

    def see(self, data: bytes) -> str | None:
        """Takes the next message; returns the table's name if it is a change that matters and isn't applied."""
        kind = data[:1]
        if kind == b"B":
            self._commit = struct.unpack_from("!Q", data, 1)[0]
        elif kind == b"R":
            number = struct.unpack_from("!I", data, 1)[0]
            schema, table = data[5:].split(b"\0", 2)[:2]
            self._relations[number] = (schema.decode() or "pg_catalog", table.decode())
        elif kind in (b"I", b"U", b"D"):
            return self._hit([struct.unpack_from("!I", data, 1)[0]])
        elif kind == b"T":
            count = struct.unpack_from("!I", data, 1)[0]
            known = min(count, (len(data) - 6) // 4)
            return self._hit(list(struct.unpack_from(f"!{known}I", data, 6)))
        return None

    def _hit(self, relations: list[int]) -> str | None:
        if self._commit <= self._applied:
            return None
        for number in relations:
            table = self._relations.get(number)
            if table in self._tables:
                return ".".join(table)
        return None


def lsn_number(text: str) -> int:
    """An LSN such as ``16/B374D848`` as a number. Raises ValueError."""
    found = _LSN.fullmatch(text)
    if found is None:
        raise ValueError(f"not an LSN: {text!r}")
    return (int(found[1], 16) << 32) | int(found[2], 16)


def resume_lsn(token: str) -> int | None:
    """Returns where reading resumes, from a PostgreSQL position token ``LSN@SYSTEM``. None if it can't be read."""
    text = token.partition("@")[0]
    return lsn_number(text) if _LSN.fullmatch(text) else None


def gtid_state(token: str) -> dict[int, int] | None:
    """Last sequence number per domain of a MariaDB position token or GTID list; None if it can't be read.

    A token is JSON whose ``gtid`` holds the list; the server's own words are the list itself: ``0-1-100,1-2-7``.
    """
    text = token
    if token.lstrip().startswith("{"):
        text = str(json.loads(token).get("gtid", ""))
    state: dict[int, int] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        words = part.split("-")
        if len(words) != 3 or not all(word.isdigit() for word in words):
            return None
        state[int(words[0])] = max(int(words[2]), state.get(int(words[0]), 0))
    return state


def pending_by_gtid(ledger: LedgerState, upto: LogPlace) -> Pending:
    """MariaDB: the same GTID state on both sides means that nothing waits, any other that something may."""
    applied, found = gtid_state(ledger.token), gtid_state(upto.state)
    if applied is None or found is None:
        return Pending(PendingAnswer.UNKNOWN, "the ledger's GTID state can't be read")
    if all(applied.get(domain, 0) >= number for domain, number in found.items()):
        return Pending(PendingAnswer.NO, "the source's GTID state is the ledger's")
    return Pending(PendingAnswer.UNKNOWN, f"the source is at {upto.state}, the ledger is behind it")
