"""The old table ``berth``, whose rows change their primary keys: one by one, there and back, whole ranges at once.

No other column is unique on either side. So an update of a key that is applied by half is stopped by nobody:
the row stands in two places, or in none.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import Session
from scenarios.workload import Action
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.choice import some_key
from scenarios.workloads.rows import Rows
from scenarios.workloads.tables import OldTable, create_tables
from verify.history.history import TrackedTable

BERTH = Tracked(
    TrackedTable("berth", fold=True),
    Columns("berth", ("id",), "writer", "write_no", "cargo"),
    Columns("slip", ("slip_id",), "client", "client_no", "weight"),
)
_COLUMNS = '"id" bigint PRIMARY KEY, "cargo" bigint NOT NULL, "writer" int NOT NULL, "write_no" int NOT NULL'
_AWAY = 1_000_000
"""A range of keys moves up by so much, or down again."""
_RANGE = 8


class Moves:
    """Keys that change, and nothing that would notice if they did so by half."""

    name = "moves"
    tracked: Sequence[Tracked] = (BERTH,)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Every second berth of 1 to twice ``spec.keys`` exists, so that there are free keys to move to."""
        create_tables(old, [OldTable("berth", _COLUMNS, "n * 2, n, 0, n", spec.keys)])

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """The server refuses a move to a key that is taken: a failed transaction."""
        writers = _Writers(spec.keys * 2, spec.hot_percent)
        return [
            Action("move", 45, writers.move),
            Action("move there and back", 10, writers.there_and_back),
            Action("move a range away", 10, writers.range_away),
            Action("move a range back", 10, writers.range_back),
            Action("load", 25, writers.load),
        ]


class _Writers:
    def __init__(self, keys: int, hot_percent: int):
        self._keys = keys
        self._hot_percent = hot_percent
        self._berths = Rows(BERTH.old)

    def move(self, session: Session) -> None:
        self._berths.move(session, self._key(session), self._key(session))

    def there_and_back(self, session: Session) -> None:
        key, free = self._key(session), -session.client
        if self._berths.move(session, key, free):
            self._berths.move(session, free, key)

    def range_away(self, session: Session) -> None:
        self._shift(session, self._key(session), _AWAY)

    def range_back(self, session: Session) -> None:
        self._shift(session, self._key(session) + _AWAY, -_AWAY)

    def load(self, session: Session) -> None:
        self._berths.add(session, self._key(session), session.rng.randint(1, 1000))

    def _shift(self, session: Session, first: int, by: int) -> None:
        """All berths of a range in one statement; numbers and keys rise together."""
        keys = range(first, first + _RANGE)
        found = {key: stamp for key in keys if (stamp := self._berths.lock(session, key)) is not None}
        if not found:
            return
        number = session.number(_RANGE)
        # The key last: MySQL's later settings see what the earlier ones have set.
        session.change(
            'UPDATE "berth" SET "writer" = %s, "write_no" = "id" - %s, "id" = "id" + %s'
            f' WHERE "id" IN ({", ".join(map(str, found))})',
            session.client,
            first - number,
            by,
        )
        for key, stamp in found.items():
            session.note_delete("berth", str(key), stamp.session, stamp.number, stamp.value)
            session.note_put("berth", str(key + by), number + key - first, stamp.value)

    def _key(self, session: Session) -> int:
        return some_key(session.rng, self._keys, self._hot_percent)
