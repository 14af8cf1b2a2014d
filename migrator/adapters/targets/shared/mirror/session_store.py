"""The store of a mirror over a session, as far as it is the same on every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from migrator.model.progress import Filling
from migrator.model.table import TableId
from migrator.ports.mirror import Covered, JoinedTarget


class StoreSession(Protocol):
    """A session of the target with the batch's transaction open."""

    def run(self, statement: str) -> object:
        """Runs one statement."""
        ...

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""
        ...


class ScratchTables(Protocol):
    """The temporary tables of a session."""

    def empty(self, name: str) -> None:
        """Empties a temporary table."""
        ...


CoveredRow = tuple[str, str, int, int | None, int, int, int]
"""A row of the table ``filling`` behind the migration: target, digest, reach, number, pieces, rows, rows of all."""


def covered_row(target: JoinedTarget, covered: Covered) -> CoveredRow:
    """The columns that are kept of a target that is being filled."""
    now = covered.filling
    return (now.target, target.digest(), covered.reach, covered.number, now.pieces, now.rows, now.of_rows)


def covered_of(rows: Iterable[Sequence[Any]]) -> dict[tuple[str, str], Covered]:
    """Inverse of ``covered_row``, by name and digest."""
    found = {}
    for target, digest, reach, number, *counts in rows:
        filling = Filling(str(target), *map(int, counts))
        found[str(target), str(digest)] = Covered(
            int(reach), None if number is None else int(number), filling
        )
    return found


SessionT = TypeVar("SessionT", bound=StoreSession)
ScratchT = TypeVar("ScratchT", bound=ScratchTables)


class SessionStore(Generic[SessionT, ScratchT]):
    """The part of ``mirror.store.MirrorStore`` that no engine does otherwise.

    Args:
        session: with the batch's transaction open.
        scratch: its temporary tables.
        migration: whose mirror it is.
        kept: per source table the columns that its mirror has.
        segment: last segment of the batch.
    """

    def __init__(
        self,
        session: SessionT,
        scratch: ScratchT,
        migration: str,
        kept: Mapping[TableId, tuple[str, ...]],
        segment: int,
    ):
        self._session = session
        self._scratch = scratch
        self._migration = migration
        self._kept = kept
        self._segment = segment

    def run(self, statement: str) -> None:
        """Runs one statement."""
        self._session.run(statement)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Runs one query and returns its few rows."""
        return self._session.rows(statement)

    def empty(self, name: str) -> None:
        """Empties a temporary table."""
        self._scratch.empty(name)
