"""Rows whose foreign key points at a row that isn't there: refused by name, or taken out when all else is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from migrator.adapters.targets.shared.refused import orphaned
from migrator.adapters.targets.shared.structure import ForeignKey
from migrator.columnar.bad_rows import cut, stored_texts
from migrator.model.progress import Parent
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.target import Orphan, OrphansAside

_ROW_TEXT = 1000
KeyT = TypeVar("KeyT", bound=ForeignKey)


class Statements(Protocol):
    """A session in the batch's transaction."""

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int | None:
        """Runs one statement."""
        ...

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""
        ...


@dataclass(frozen=True, slots=True)
class OrphanSql(Generic[KeyT]):
    """An engine's statements.

    Attributes:
        found: given a foreign key, the child's columns and a number, finds so many rows without a parent at most:
            the columns' values as text, cut to a hundred characters where they are neither of the child's key nor of
            the foreign key.
        removed: deletes all rows that a foreign key has no parent for.
    """

    found: Callable[[KeyT, TargetTable, int], str]
    removed: Callable[[KeyT], str]


class Orphans(Generic[KeyT]):
    """The orphans of one transaction.

    Rows may miss their parent until the batch's last part is written: what is met is noted, and looked for again in
    ``settle``. Whoever loses a row there may leave its own children behind: they are looked for until none is left.

    Args:
        session: in the transaction.
        tables: the target tables by name; a row of another one is never taken out.
        keys: all foreign keys between them.
        aside: what becomes of orphans; None: the first is refused.
        sql: the engine's.
    """

    def __init__(
        self,
        session: Statements,
        tables: Mapping[TableId, TargetTable],
        keys: Iterable[KeyT],
        aside: OrphansAside | None,
        sql: OrphanSql[KeyT],
    ):
        self._session, self._tables, self._keys, self._aside, self._sql = session, tables, keys, aside, sql
        self._met: dict[KeyT, None] = {}

    def met(self, key: KeyT, child_key: Sequence[str], row: Sequence[object]) -> None:
        """Notes a foreign key of which a row has no parent. Raises ``TargetError`` where none may go aside.

        Args:
            key: the foreign key.
            child_key: the key's columns of the child.
            row: its values, then those of the foreign key.
        """
        if self._aside is None or key.child not in self._tables:
            raise orphaned(key, child_key, row)
        self._met[key] = None

    def waiting(self) -> bool:
        """Tells whether any was met."""
        return bool(self._met)

    def settle(self) -> None:
        """Takes all orphans out, and has records of them kept. Foreign keys must be off. Raises ``TargetError``."""
        waiting = sorted(self._met, key=lambda one: (one.child, one.name))
        while waiting:
            key = waiting.pop(0)
            if not self._taken(key):
                continue
            for other in self._keys:
                if other.parent != key.child or other in waiting:
                    continue
                if other.child in self._tables:
                    waiting.append(other)
        self._met = {}

    def _taken(self, key: KeyT) -> bool:
        if self._aside is None:
            return False
        child = self._tables[key.child]
        names = [column.name for column in child.columns]
        rows = self._session.rows(self._sql.found(key, child, self._aside.most + 1))
        if not rows:
            return False
        self._aside.records([self._orphan(key, child, dict(zip(names, row, strict=True))) for row in rows])
        self._session.run(self._sql.removed(key))
        return True

    def _orphan(self, key: KeyT, child: TargetTable, row: Mapping[str, str | None]) -> Orphan:
        """Raises ``TargetError`` where the row's key has a type of which the mapped text can't be known."""
        own = stored_texts(child, child.key, [row[name] for name in child.key])
        values = [row[name] for name in key.child_columns]
        if own is None:
            raise orphaned(key, child.key, [*(row[name] for name in child.key), *values])
        parent = self._tables.get(key.parent)
        points = None if parent is None else stored_texts(parent, key.parent_columns, values)
        text = ", ".join(f"{name}={value!r}" for name, value in row.items())
        columns = key.parent_columns if points is not None else ()
        return Orphan(
            child, own, cut(text, _ROW_TEXT), key.name, Parent(key.parent.name, columns, points or ())
        )
