"""The old table ``locker`` with a primary key and a unique code, both of which wander among the rows.

A swap needs a third value for a moment: keys are parked below zero, codes behind a tilde, and no transaction leaves
one there.
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

LOCKER = Tracked(
    TrackedTable("locker", fold=True),
    Columns("locker", ("id",), "writer", "write_no", "content"),
    Columns("safe", ("safe_id",), "client", "client_no", "content"),
)
_COLUMNS = (
    '"id" bigint PRIMARY KEY, "code" varchar(24) NOT NULL UNIQUE, "content" bigint NOT NULL,'
    ' "writer" int NOT NULL, "write_no" int NOT NULL'
)
_PARKED_A_CLIENT = 100_000_000


class Swaps:
    """Keys and unique values that change hands."""

    name = "swaps"
    tracked: Sequence[Tracked] = (LOCKER,)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Every second locker of 1 to twice ``spec.keys`` exists, so that there are free keys to move to."""
        create_tables(old, [OldTable("locker", _COLUMNS, "n * 2, concat('C', n), n, 0, n", spec.keys)])

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """The server refuses a move to a key that is taken: a failed transaction."""
        writers = _Writers(spec.keys * 2, spec.hot_percent)
        return [
            Action("swap keys", 30, writers.swap_keys),
            Action("move", 20, writers.move),
            Action("move there and back", 6, writers.there_and_back),
            Action("rotate keys", 5, writers.rotate_keys),
            Action("swap codes", 25, writers.swap_codes),
            Action("fill", 12, writers.fill),
            Action("change mind", 4, writers.change_mind),
        ]


class _Writers:
    def __init__(self, keys: int, hot_percent: int):
        self._keys = keys
        self._hot_percent = hot_percent
        self._lockers = Rows(LOCKER.old)

    def swap_keys(self, session: Session) -> None:
        self._rotate(session, self._locked(session, 2))

    def rotate_keys(self, session: Session) -> None:
        self._rotate(session, self._locked(session, 3))

    def move(self, session: Session) -> None:
        self._lockers.move(session, self._key(session), self._key(session))

    def there_and_back(self, session: Session) -> None:
        key, parked = self._key(session), _parked(session)
        if self._lockers.move(session, key, parked):
            self._lockers.move(session, parked, key)

    def swap_codes(self, session: Session) -> None:
        codes: dict[int, tuple[str, int]] = {}
        for key in some_keys(session.rng, self._keys, 2, self._hot_percent):
            for code, content in session.rows(
                'SELECT "code", "content" FROM "locker" WHERE "id" = %s FOR UPDATE', key
            ):
                codes[key] = code, content
        if len(codes) < 2:
            return
        (one, (one_code, one_content)), (two, (two_code, two_content)) = codes.items()
        self._lockers.update(session, one, one_content, code=f"~{_parked(session)}")
        self._lockers.update(session, two, two_content, code=one_code)
        self._lockers.update(session, one, one_content, code=two_code)

    def fill(self, session: Session) -> None:
        self._lockers.add(session, self._key(session), session.rng.randint(1, 10**9))

    def change_mind(self, session: Session) -> None:
        self.swap_keys(session)
        self.swap_codes(session)
        raise RollBack

    def _key(self, session: Session) -> int:
        return some_key(session.rng, self._keys, self._hot_percent)

    def _locked(self, session: Session, count: int) -> list[int]:
        """Locks up to ``count`` lockers that exist, in ascending order of their keys, and returns those keys."""
        keys = some_keys(session.rng, self._keys, count * 2, self._hot_percent)
        return [key for key in keys if self._lockers.lock(session, key)][:count]

    def _rotate(self, session: Session, keys: Sequence[int]) -> None:
        """Each row takes the next one's key, the last the first one's."""
        if len(keys) < 2:
            return
        parked = _parked(session)
        self._lockers.move(session, keys[-1], parked)
        for place in range(len(keys) - 2, -1, -1):
            self._lockers.move(session, keys[place], keys[place + 1])
        self._lockers.move(session, parked, keys[0])


def _parked(session: Session) -> int:
    return -(session.client * _PARKED_A_CLIENT + session.number())
