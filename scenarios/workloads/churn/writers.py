"""The old table ``ticket``: rows come, go and come back under the same keys.

A pipeline that confuses the order of a delete and an insert keeps a deleted row, or lacks a present one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import RollBack, Session
from scenarios.workload import Action
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.choice import some_key
from scenarios.workloads.rows import Rows
from scenarios.workloads.tables import OldTable, create_tables
from verify.history.history import TrackedTable

TICKET = Tracked(
    TrackedTable("ticket", fold=True),
    Columns("ticket", ("id",), "writer", "write_no", "price"),
    Columns("pass", ("pass_id",), "client", "client_no", "price"),
)
_COLUMNS = (
    '"id" bigint PRIMARY KEY, "price" int NOT NULL, "seat" varchar(12) NOT NULL, "paid" smallint NOT NULL,'
    ' "writer" int NOT NULL, "write_no" int NOT NULL'
)


class Churn:
    """Deletes and inserts of the same keys."""

    name = "churn"
    tracked: Sequence[Tracked] = (TICKET,)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Every second ticket of 1 to twice ``spec.keys`` is there."""
        fill = "n * 2, 1000 + n, concat('ROW ', mod(n, 40)), mod(n, 2), 0, n"
        create_tables(old, [OldTable("ticket", _COLUMNS, fill, spec.keys)])

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """The writers' transactions. The server refuses to insert a ticket that exists: that transaction fails."""
        writers = _Writers(spec.keys * 2, spec.hot_percent)
        return [
            Action("insert", 30, writers.insert),
            Action("delete", 28, writers.delete),
            Action("replace", 12, writers.replace),
            Action("come and go", 8, writers.come_and_go),
            Action("go, come and go", 6, writers.go_come_go),
            Action("raise the price", 8, writers.raise_price),
            Action("pass on", 5, writers.pass_on),
            Action("change mind", 5, writers.change_mind),
        ]


class _Writers:
    def __init__(self, keys: int, hot_percent: int):
        self._keys = keys
        self._hot_percent = hot_percent
        self._tickets = Rows(TICKET.old)

    def insert(self, session: Session) -> None:
        self._insert(session, self._key(session))

    def delete(self, session: Session) -> None:
        self._tickets.delete(session, self._key(session))

    def replace(self, session: Session) -> None:
        key = self._key(session)
        if self._tickets.delete(session, key):
            self._insert(session, key)

    def come_and_go(self, session: Session) -> None:
        key = self._key(session)
        self._insert(session, key)
        self._tickets.delete(session, key)

    def go_come_go(self, session: Session) -> None:
        key = self._key(session)
        if self._tickets.delete(session, key):
            self._insert(session, key)
            self._tickets.delete(session, key)

    def raise_price(self, session: Session) -> None:
        self._tickets.add(session, self._key(session), session.rng.randint(1, 999), **_seat(session))

    def pass_on(self, session: Session) -> None:
        """One ticket goes and another comes, together."""
        first, second = self._key(session), self._key(session)
        if self._tickets.delete(session, first):
            self._insert(session, second)

    def change_mind(self, session: Session) -> None:
        self.replace(session)
        raise RollBack

    def _key(self, session: Session) -> int:
        return some_key(session.rng, self._keys, self._hot_percent)

    def _insert(self, session: Session, key: int) -> None:
        self._tickets.insert(session, key, session.rng.randint(1, 9999), **_seat(session))


def _seat(session: Session) -> dict[str, object]:
    return {"seat": f"ROW {session.rng.randint(1, 40)}", "paid": session.rng.randint(0, 1)}
