"""Temporary staging tables, kept by the session.

Made, dropped and emptied between transactions. CREATE TEMPORARY TABLE commits nothing, but TRUNCATE does, and a
server that keeps GTIDs refuses some of this inside a transaction.
"""

from __future__ import annotations

from migrator.adapters.targets.mysql.session import Session

_MOST_TABLES = 200
Place = tuple[str, str]


class StagingTables:
    """The staging tables of one session, found by owner and declaration."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[Place, str] = {}
        self._count = 0
        self._used: set[str] = set()

    def clean(self, wanted: int) -> None:
        """Empties what the last batch used; drops all when ``wanted`` more would be too many. Not inside a
        batch."""
        if len(self._names) + wanted > _MOST_TABLES:
            for name in self._names.values():
                self._session.run(f"DROP TEMPORARY TABLE {name}")
            self._names.clear()
            self._used.clear()
        for name in self._used:
            self._session.run(f"TRUNCATE TABLE {name}")
        self._used.clear()

    def table(self, owner: str, body: str) -> str:
        """Name of the staging table with this declaration (columns and keys), made if there is none yet.

        ``owner`` keeps tables apart that are used at the same time.
        """
        name = self._names.get((owner, body))
        if name is None:
            self._count += 1
            name = f"migrator_stage_{self._count}"
            self._session.make_temporary(name, body)
            self._names[owner, body] = name
        self._used.add(name)
        return name
