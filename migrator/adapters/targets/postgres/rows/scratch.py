"""Temporary tables of the mirror, kept by the session and emptied when they are taken again.

There are many of them, and most batches use few. Few rows are deleted: TRUNCATE makes new files of a table, of its
long values and of their index, and new rows in the catalog.
"""

from __future__ import annotations

from migrator.adapters.targets.postgres.session import Session

Columns = tuple[tuple[str, str], ...]
MANY_ROWS = 1000
"""Rows of a temporary table from which it is emptied by TRUNCATE."""


def emptied(name: str, many: bool) -> str:
    """The statement that empties a temporary table."""
    return f"TRUNCATE pg_temp.{name}" if many else f"DELETE FROM pg_temp.{name}"


class Scratch:
    """The temporary tables of one session, found by owner and columns."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[tuple[str, Columns], str] = {}
        self._used: set[str] = set()
        self._new: list[tuple[str, Columns]] = []
        self._count = 0
        self._taken: set[str] = set()
        self._long: set[str] = set()
        self._many = False

    def begin(self) -> None:
        """A transaction has begun."""
        self._new.clear()
        if self._many:
            self._long |= self._taken
        self._taken.clear()
        self._many = False

    def seen(self, rows: int) -> None:
        """Notes a number of rows that were in some of the transaction's tables: if many, then maybe in each."""
        self._many = self._many or rows > MANY_ROWS

    def rolled_back(self) -> None:
        """The transaction was undone, and with it the tables that were made in it."""
        for place in self._new:
            self._names.pop(place, None)
        self._new.clear()

    def table(self, owner: str, columns: Columns) -> str:
        """Name of an empty temporary table with these columns (name, SQL type); ``owner`` keeps uses apart."""
        name = self._names.get((owner, columns))
        if name is None:
            self._count += 1
            name = f"migrator_scratch_{self._count}"
            body = ", ".join(f"{column} {kind}" for column, kind in columns)
            self._session.later(f"CREATE TEMPORARY TABLE {name} ({body})")
            self._names[owner, columns] = name
            self._new.append((owner, columns))
        elif name in self._used:
            self.empty(name)
        self._used.add(name)
        self._taken.add(name)
        return name

    def empty(self, name: str) -> None:
        """Empties a table that is about to be used again."""
        self._session.later(emptied(name, self._many or name in self._long))
        self._long.discard(name)
