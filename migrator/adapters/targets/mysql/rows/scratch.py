"""Temporary tables of the mirror, kept by the session and emptied when they are taken again.

Made and emptied inside the transaction too, by statements that don't commit: CREATE TEMPORARY TABLE, and DELETE
instead of TRUNCATE. A rollback takes the rows and leaves the tables.
"""

from __future__ import annotations

from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.shared.mirror.mirrored import Typed


class Scratch:
    """The temporary tables of one session, found by owner and columns."""

    def __init__(self, session: Session):
        self._session = session
        self._names: dict[tuple[str, Typed], str] = {}

    def table(self, owner: str, columns: Typed, by: str = "") -> str:
        """Name of an empty temporary table with these columns (name, SQL type); ``owner`` keeps uses apart.

        ``by``: the index by which rows are looked up. MariaDB has no hash join unless told so.
        """
        name = self._names.get((owner, columns))
        if name is not None:
            self.empty(name)
            return name
        name = f"migrator_scratch_{len(self._names)}"
        body = ", ".join(f"{column} {kind}" for column, kind in columns)
        keys = f", KEY ({by})" if by else ""
        self._session.make_temporary(name, f"{body}{keys}")
        self._names[owner, columns] = name
        return name

    def empty(self, name: str) -> None:
        """Empties a table that is about to be used again."""
        self._session.run(f"DELETE FROM {name}")
