"""The old table ``register`` and its writers: updates, upserts and removals of random keys, one or several at once.

Every write raises its row's value, in the server, by a step that no other write has: it is made of the
write's number and the client. So the values of a key only rise, each one is unique, and a step taken twice
shows.
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

REGISTER = Tracked(
    TrackedTable("register", fold=True),
    Columns("register", ("id",), "writer", "write_no", "reading"),
    Columns("gauge", ("gauge_id",), "client", "client_no", "level"),
)
_COLUMNS = (
    '"id" bigint PRIMARY KEY, "reading" bigint NOT NULL, "state" varchar(12) NOT NULL, "fee" varchar(24) NOT NULL,'
    ' "note" varchar(80) NOT NULL, "writer" int NOT NULL, "write_no" int NOT NULL'
)
_FILL = "n, n * 1000, 'NEW', '12.50', '', 0, n"
_STATES = ("NEW", "SEEN", "Checked", "CLOSED")
_NOTES = ("", "  ", "seen by day", "größer als 5 µm", "数字", "tab\tand 'quote'")


class Registers:
    """Values that only rise.

    Args:
        name: as scenarios name it.
        hot_percent: share of writes that go to the hot key if the scenario does not say.
    """

    tracked: Sequence[Tracked] = (REGISTER,)
    project = Path(__file__).parent

    def __init__(self, name: str = "registers", hot_percent: int = 0):
        self.name = name
        self._hot_percent = hot_percent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Registers 1 to ``spec.keys``."""
        create_tables(old, [OldTable("register", _COLUMNS, _FILL, spec.keys)])

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """Upserts reach a quarter of keys that are free at first."""
        writers = _Writers(spec.keys, spec.hot_percent or self._hot_percent)
        return [
            Action("write one", 50, writers.write_one),
            Action("write several", 20, writers.write_several),
            Action("upsert", 12, writers.upsert),
            Action("write one twice", 5, writers.write_twice),
            Action("remove", 5, writers.remove),
            Action("undo a part", 3, writers.undo_part),
            Action("change mind", 5, writers.change_mind),
        ]


class _Writers:
    def __init__(self, keys: int, hot_percent: int):
        self._keys = keys
        self._hot_percent = hot_percent
        self._rows = Rows(REGISTER.old)

    def write_one(self, session: Session) -> None:
        self._write(session, self._key(session))

    def write_several(self, session: Session) -> None:
        for key in some_keys(session.rng, self._keys, session.rng.randint(2, 6), self._hot_percent):
            self._write(session, key)

    def write_twice(self, session: Session) -> None:
        key = self._key(session)
        self._write(session, key)
        self._write(session, key)

    def upsert(self, session: Session) -> None:
        key = some_key(session.rng, self._keys * 5 // 4, self._hot_percent)
        self._rows.put(session, key, _step(session), **_others(session))

    def remove(self, session: Session) -> None:
        self._rows.delete(session, some_key(session.rng, self._keys * 5 // 4))

    def undo_part(self, session: Session) -> None:
        first, *rest = some_keys(session.rng, self._keys, 3, self._hot_percent)
        self._write(session, first)
        with session.savepoint():
            for key in rest:
                self._write(session, key)
            raise RollBack

    def change_mind(self, session: Session) -> None:
        self.write_several(session)
        raise RollBack

    def _key(self, session: Session) -> int:
        return some_key(session.rng, self._keys, self._hot_percent)

    def _write(self, session: Session, key: int) -> None:
        self._rows.add(session, key, _step(session), **_others(session))


def _step(session: Session) -> int:
    return session.number() * 1000 + session.client


def _others(session: Session) -> dict[str, object]:
    rng = session.rng
    return {
        "state": rng.choice(_STATES),
        "fee": f"{rng.randint(0, 99_999) / 100:.2f}",
        "note": rng.choice(_NOTES),
    }
