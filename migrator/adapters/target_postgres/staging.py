"""Temporary staging tables, kept by the session and emptied by every commit.

Making a temporary table for every batch would fill pg_class and pg_attribute with dead rows. A kept one is made
outside of the batch's transaction, else a rollback would take it away.
"""

from __future__ import annotations

from migrator.adapters.target_postgres.session import Session

_MOST_TABLES = 200


class StagingTables:
    """The staging tables of one session, found by their column types."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[tuple[str, tuple[tuple[str, str], ...]], str] = {}
        self._made = 0

    def make_room(self, wanted: int) -> None:
        """Drops all when ``wanted`` more would be too many: every commit empties each of them. Outside a batch."""
        if len(self._names) + wanted <= _MOST_TABLES:
            return
        for name in self._names.values():
            self._session.run(f"DROP TABLE pg_temp.{name}")
        self._names.clear()

    def table(self, owner: str, columns: tuple[tuple[str, str], ...]) -> str:
        """Name of the staging table with these columns (name, SQL type), made if there is none yet.

        ``owner`` keeps tables apart that are used at the same time. To be called outside of a transaction.
        """
        name = self._names.get((owner, columns))
        if name is None:
            self._made += 1
            name = f"migrator_stage_{self._made}"
            body = ", ".join(f"{column} {kind}" for column, kind in columns)
            self._session.run(f"CREATE TEMPORARY TABLE {name} ({body}) ON COMMIT DELETE ROWS")
            self._names[owner, columns] = name
        return name
