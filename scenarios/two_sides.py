"""Applications of two schemas: clients that write to whichever side takes their writes.

Whoever is refused by a fence goes to the other side, as an application does that fails over by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from scenarios.database import Database
from scenarios.workload import Operation, Place, Workload

FENCED = "this database was handed over"
"""The words of a fence to whom it refuses."""
_NAP_S = 0.05
_LOGIN = "application"


class FailsOver(Workload):
    """Writers of two sides; a subclass sets what is done on either.

    Attributes:
        _sides: the old and the new one.
        _open: the one that took the last write.
    """

    _sides: tuple[Place, Place]
    _open: Place

    def databases(self) -> tuple[Database, Database]:
        """Returns the old and the new side."""
        old, new = self._sides
        return old.database, new.database

    def _place(self) -> Place:
        return self._open

    def _refused(self, database: Database, cause: str) -> None:
        if FENCED not in cause:
            return
        old, new = self._sides
        self._open = new if database == old.database else old
        self._halt.wait(_NAP_S)  # during the switch both refuse


def application_login(database: Database) -> Database:
    """Makes the application's own login, which writes every table that is there: a fence stops it, and not the
    tool's."""
    statements = (
        [
            f"CREATE ROLE {_LOGIN} LOGIN",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {_LOGIN}",
        ]
        if database.kind == "postgresql"
        else [
            f"CREATE USER '{_LOGIN}'@'%'",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON `{database.database}`.* TO '{_LOGIN}'@'%'",
        ]
    )
    connection = database.connect(autocommit=True)
    try:
        for statement in statements:
            connection.cursor().execute(statement)
    finally:
        connection.close()
    return replace(database, user=_LOGIN, password="")


def longest_pause_s(operations: Sequence[Operation], since_s: float) -> float:
    """The longest time without a commit since a moment of the monotonic clock, in seconds."""
    ended = sorted(one.ended_s for one in operations if one.outcome == "ok" and one.ended_s >= since_s)
    return max((after - before for before, after in pairwise([since_s, *ended])), default=0.0)
