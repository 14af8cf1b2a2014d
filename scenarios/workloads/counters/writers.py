"""The old tables ``tally`` and ``click``: counters, and one row for every increment in the same transaction.

In every consistent state a counter is the sum of its clicks. An increment replayed or lost breaks that.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import RollBack, Session
from scenarios.workload import Action
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.choice import some_key, some_keys
from scenarios.workloads.rows import Rows
from scenarios.workloads.tables import OldTable, create_tables
from verify.history.history import TrackedTable

TALLY = Tracked(
    TrackedTable("tally", fold=True),
    Columns("tally", ("id",), "writer", "write_no", "hits"),
    Columns("counter", ("counter_id",), "client", "client_no", "total"),
)
CLICK = Tracked(
    TrackedTable("click"),
    Columns("click", ("id",), "writer", "write_no", "amount"),
    Columns("hit", ("hit_id",), "client", "client_no", "amount"),
)
_TALLY = (
    '"id" int PRIMARY KEY, "label" varchar(40) NOT NULL, "hits" bigint NOT NULL,'
    ' "writer" int NOT NULL, "write_no" int NOT NULL'
)
_CLICK = (
    '"id" bigint PRIMARY KEY, "tally" int NOT NULL, "amount" bigint NOT NULL,'
    ' "writer" int NOT NULL, "write_no" int NOT NULL'
)
CLICKS_A_CLIENT = 100_000_000
"""Numbers of clicks of one client at most."""


class Counters:
    """Increments that are not idempotent."""

    name = "counters"
    tracked: Sequence[Tracked] = (TALLY, CLICK)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Counters 1 to ``spec.keys``, all at zero."""
        create_tables(
            old,
            [
                OldTable("tally", _TALLY, "n, concat('page ', n), 0, 0, n", spec.keys),
                OldTable("click", _CLICK),
            ],
        )

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """Increments of one or several counters."""
        return self._actions(_Writers(spec.keys, spec.hot_percent))

    def new_actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """The same on the new side, once it is open: counters and hits."""
        return self._actions(_Writers(spec.keys, spec.hot_percent, TALLY.new, CLICK.new, "counter_id"))

    @staticmethod
    def _actions(writers: _Writers) -> Sequence[Action]:
        return [
            Action("count one", 60, writers.count_one),
            Action("count several", 25, writers.count_several),
            Action("count one twice", 7, writers.count_twice),
            Action("undo a part", 3, writers.undo_part),
            Action("change mind", 5, writers.change_mind),
        ]


class _Writers:
    def __init__(
        self,
        keys: int,
        hot_percent: int,
        tallies: Columns = TALLY.old,
        clicks: Columns = CLICK.old,
        counted: str = "tally",
    ):
        self._keys = keys
        self._hot_percent = hot_percent
        self._tallies = Rows(tallies)
        self._clicks = Rows(clicks)
        self._counted = counted

    def count_one(self, session: Session) -> None:
        self._count(session, some_key(session.rng, self._keys, self._hot_percent))

    def count_several(self, session: Session) -> None:
        for key in some_keys(session.rng, self._keys, session.rng.randint(2, 4), self._hot_percent):
            self._count(session, key)

    def count_twice(self, session: Session) -> None:
        key = some_key(session.rng, self._keys, self._hot_percent)
        self._count(session, key)
        self._count(session, key)

    def undo_part(self, session: Session) -> None:
        first, *rest = some_keys(session.rng, self._keys, 3, self._hot_percent)
        self._count(session, first)
        with session.savepoint():
            for key in rest:
                self._count(session, key)
            raise RollBack

    def change_mind(self, session: Session) -> None:
        self.count_several(session)
        raise RollBack

    def _count(self, session: Session, key: int) -> None:
        amount = session.rng.randint(1, 9)
        if self._tallies.add(session, key, amount):
            click = session.client * CLICKS_A_CLIENT + session.number()
            self._clicks.insert(session, click, amount, **{self._counted: key})
