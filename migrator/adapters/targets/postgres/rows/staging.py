"""Staging tables, kept by the session: emptied when they are taken again, those of many rows by the next batch.

Making a temporary table for every batch would fill pg_class and pg_attribute with dead rows, and emptying all by each
commit would cost more than a small batch does. A kept one is made outside of the batch's transaction if its rows are
known by then; of those made inside, a rollback is remembered.
"""

from __future__ import annotations

from migrator.adapters.targets.postgres.rows.scratch import MANY_ROWS, Columns, emptied
from migrator.adapters.targets.postgres.session import Session

_MOST_TABLES = 200


class StagingTables:
    """The staging tables of one session, found by their column types."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[tuple[str, Columns], str] = {}
        self._count = 0
        self._inside = False
        self._new: list[tuple[str, Columns]] = []
        self._used: set[str] = set()
        """Tables that may have rows."""
        self._due: set[str] = set()
        """Tables that are taken again by the batch that is about to begin."""
        self._many: set[str] = set()
        self._many_next: set[str] = set()
        """Tables of many rows: of the last batch that began, and of the one that is about to."""

    def begin(self) -> None:
        """A batch's transaction has begun."""
        self._inside = True
        self._new.clear()
        for name in sorted(self._due | self._many):
            self._session.later(emptied(name, name in self._many))
        self._due.clear()
        self._many, self._many_next = self._many_next, set()

    def rolled_back(self) -> None:
        """The transaction was undone, and with it the tables that were made in it."""
        self._inside = False
        for place in self._new:
            name = self._names.pop(place, None)
            for names in (self._used, self._due, self._many, self._many_next):
                names.discard(name or "")
        self._new.clear()

    def committed(self) -> None:
        """The transaction is over; the tables stay."""
        self._inside = False
        self._new.clear()

    def make_room(self, wanted: int) -> None:
        """Drops all when ``wanted`` more would be too many. Not inside a batch."""
        if self._inside or len(self._names) + wanted <= _MOST_TABLES:
            return
        for name in self._names.values():
            self._session.run(f"DROP TABLE pg_temp.{name}")
        for names in (self._names, self._used, self._due, self._many, self._many_next):
            names.clear()

    def table(self, owner: str, columns: Columns, rows: int = 0) -> str:
        """Name of the staging table with these columns (name, SQL type), made if there is none yet; empty once the
        batch's transaction has begun.

        ``owner`` keeps tables apart that are used at the same time; ``rows`` is how many it will have.
        """
        name = self._names.get((owner, columns))
        if name is None:
            self._count += 1
            name = f"migrator_stage_{self._count}"
            body = ", ".join(f"{column} {kind}" for column, kind in columns)
            self._session.run(f"CREATE TEMPORARY TABLE {name} ({body})")
            self._names[owner, columns] = name
            if self._inside:
                self._new.append((owner, columns))
        elif name in self._used:
            self._empty(name)
        self._used.add(name)
        if rows > MANY_ROWS:
            (self._many if self._inside else self._many_next).add(name)
        return name

    def _empty(self, name: str) -> None:
        if not self._inside:
            self._due.add(name)
            return
        self._session.later(emptied(name, name in self._many))
        self._many.discard(name)
