"""Temporary staging tables, kept by the session and emptied by every commit.

Making a temporary table for every batch would fill pg_class and pg_attribute with dead rows. A kept one is made
outside of the batch's transaction if its rows are known by then; of those made inside, a rollback is remembered.
"""

from __future__ import annotations

from migrator.adapters.targets.postgres.session import Session

_MOST_TABLES = 200


class StagingTables:
    """The staging tables of one session, found by their column types."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
        self._count = 0
        self._inside = False
        self._new: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def begin(self) -> None:
        """A batch's transaction has begun."""
        self._inside = True
        self._new.clear()

    def rolled_back(self) -> None:
        """The transaction was undone, and with it the tables that were made in it."""
        self._inside = False
        for place in self._new:
            self._names.pop(place, None)
        self._new.clear()

    def committed(self) -> None:
        """The transaction is over; the tables stay."""
        self._inside = False
        self._new.clear()

    def make_room(self, wanted: int) -> None:
        """Drops all when ``wanted`` more would be too many: every commit empties each of them. Not inside a
        batch."""
        if self._inside or len(self._names) + wanted <= _MOST_TABLES:
            return
        for name in self._names.values():
            self._session.run(f"DROP TABLE pg_temp.{name}")
        self._names.clear()

    def table(self, owner: str, columns: tuple[tuple[str, str], ...]) -> str:
        """Name of the staging table with these columns (name, SQL type), made if there is none yet.

        ``owner`` keeps tables apart that are used at the same time.
        """
        name = self._names.get((owner, columns))
        if name is None:
            self._count += 1
            name = f"migrator_stage_{self._count}"
            body = ", ".join(f"{column} {kind}" for column, kind in columns)
            self._session.run(f"CREATE TEMPORARY TABLE {name} ({body}) ON COMMIT DELETE ROWS")
            self._names[owner, columns] = name
            if self._inside:
                self._new.append((owner, columns))
        return name
