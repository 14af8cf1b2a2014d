"""Clients that do a query log's transactions again."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping

from scenarios.chaos.query_log.recording import Recording
from scenarios.chaos.query_log.schedule import Recorded, Schedule
from scenarios.chaos.writes.changes import Kind
from scenarios.chaos.writes.clients import Changed, Clients
from scenarios.database import Database
from scenarios.session import RollBack, Session
from scenarios.workload import Operation, Place

_NAME = r"(?:(?:\w+|\"[^\"]+\"|`[^`]+`)\s*\.\s*)?(?P<table>\w+|\"[^\"]+\"|`[^`]+`)"
_PLAIN: Mapping[Kind, re.Pattern[str]] = {
    "insert": re.compile(rf"\s*INSERT\s+INTO\s+{_NAME}\s*(?:\(|VALUES?\b|SELECT\b|DEFAULT\b|SET\b)", re.IGNORECASE),
    "update": re.compile(rf"\s*UPDATE\s+(?:ONLY\s+)?{_NAME}\s+(?:(?:AS\s+)?\w+\s+)?SET\b", re.IGNORECASE),
    "delete": re.compile(rf"\s*DELETE\s+FROM\s+(?:ONLY\s+)?{_NAME}\s*(?:(?:AS\s+)?\w+\s*)?(?:WHERE\b.*)?;?\s*\Z",
                         re.IGNORECASE | re.DOTALL),
}  # fmt: skip
_EITHER = re.compile(r"\bON\s+(CONFLICT|DUPLICATE)\b", re.IGNORECASE)
"""Clauses with which an INSERT may update a row instead."""


def counted(statement: str, tables: Collection[str]) -> tuple[str, Kind] | None:
    """The table and the kind of change of which a statement's rows are all; None where that isn't plain."""
    for kind, pattern in _PLAIN.items():
        found = pattern.match(statement)
        if found is not None and not (kind == "insert" and _EITHER.search(statement)):
            name = found["table"]
            folded = name[1:-1] if name[0] in '"`' else name
            same = [one for one in tables if one == folded or (name == folded and one == folded.lower())]
            return (same[0], kind) if same else None
    return None


class Player(Clients[Recorded]):
    """A workload that does again what a log tells, in an order that keeps what each transaction relied on.

    Args:
        database: the old side, with the application's login.
        recording: of the log.
        clients: how many work side by side.
        tables: whose changes are counted.
        rate_per_s: row changes per second over all clients.
    """

    def __init__(
        self,
        database: Database,
        recording: Recording,
        clients: int,
        tables: Collection[str],
        rate_per_s: float,
    ):
        super().__init__(database, clients, 0, rate_per_s)
        self._recording, self._tables = recording, frozenset(tables)
        self._schedule = Schedule(recording.transactions)
        self._causes = dict[str, str]()
        self._mine = threading.local()

    def left_out(self) -> Mapping[str, str]:
        """The server's words by the first words of statements that it refused."""
        return self._causes

    def counts(self) -> Mapping[str, int]:
        """Transactions of the log, those of them that were begun, and what couldn't be done again."""
        number = self._schedule.number
        return {
            "transactions of the query log": number,
            "begun again": number - self._schedule.left,
            **{f"left out: {what}": times for what, times in self._recording.left_out.items()},
        }

    def _place(self) -> Place:
        """Returns another place for another session's transaction, which so gets a new connection."""
        mine = self._mine
        if getattr(mine, "next", None) is None:
            mine.next = self._schedule.take(self._halt.is_set)
            if mine.next is not None and mine.next.session != getattr(mine, "session", None):
                mine.session, mine.place = mine.next.session, Place(self._own.database, self._own.actions)
        return getattr(mine, "place", self._own)

    def _run(self, session: Session) -> None:
        transaction: Recorded | None = getattr(self._mine, "next", None)
        self._mine.next = None
        if transaction is None:
            self._halt.set()  # the log is at its end
            raise RollBack
        changed = self._begun(session, transaction)
        if session.database.kind != "postgresql":
            # Our own connections take double quotes for names; clients of these servers write texts in them.
            session.change("SET SESSION sql_mode = DEFAULT")
        for step in transaction.settings:
            session.change(step.text, *step.values)
        for step in transaction.steps:
            number = session.change(step.text, *step.values)
            place = counted(step.text, self._tables)
            if place is not None:
                changed[place] += number
        if transaction.undone:
            raise RollBack

    def _over(self, operation: Operation, transaction: Recorded, changed: Changed) -> None:
        starts = (" ".join(step.text.split()[:2]).upper() for step in transaction.steps)
        if any(words.startswith("ROLLBACK TO") for words in starts):
            changed.clear()  # some of it was undone: which part isn't counted
        if operation.cause:
            self._causes[" ".join(transaction.steps[-1].text.split()[:4])] = operation.cause.split("\n")[0]
        self._schedule.ended(transaction)
