"""The port through which the mirror uses a target's adapter inside a batch's transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from migrator.adapters.targets.shared.mirror.mirrored import Mirrored, Typed
from migrator.model.reach import Reach
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import Covered, JoinedTarget


class MirrorStore(Protocol):
    """Statements, temporary tables, and rows that come and go. Raises ``TargetError`` for rows that can't be
    kept."""

    def run(self, statement: str) -> object:
        """Runs one statement."""
        ...

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Runs one query and returns its few rows."""
        ...

    def selected(self, statement: str, table: Mirrored) -> pa.Table:
        """Source rows that a query gives: all columns of a mirrored table."""
        ...

    def flagged(self, statement: str, table: Mirrored) -> tuple[pa.ChunkedArray, pa.Table]:
        """The same behind a column of flags."""
        ...

    def whole(self, table: Mirrored) -> Iterator[pa.Table]:
        """All rows of a mirrored table, in parts."""
        ...

    def mirrored(self, schema: TableSchema) -> Mirrored:
        """The mirrored table of a source table, without temporary tables."""
        ...

    def scratch(self, owner: str, columns: Typed, by: Sequence[str] = ()) -> str:
        """An empty temporary table; ``owner`` keeps uses apart, ``by`` are columns by which rows are looked up."""
        ...

    def empty(self, name: str) -> None:
        """Empties a temporary table that is about to be used again."""
        ...

    def load(
        self, name: str, table: Mirrored, rows: pa.Table, names: Sequence[str], chunk: bool | None = None
    ) -> None:
        """Appends these columns of source rows to a temporary table, behind a flag ``chunk`` if one is given."""
        ...

    def load_directly(self, table: Mirrored, parts: Iterator[pa.Table]) -> bool:
        """Appends source rows to the mirror's table; False, with nothing done, when some are there already."""
        ...

    def number_table(self, reach: Reach) -> str:
        """Quoted name of the table of a computed grain's numbers."""
        ...

    def load_numbers(self, reach: Reach, table: Mirrored, numbers: pa.Table) -> None:
        """Appends to it keys with their ``~number``."""
        ...

    def filled(self) -> frozenset[tuple[str, str]]:
        """See ``ports.mirror.Mirror``."""
        ...

    def mark_filled(self, target: JoinedTarget) -> None:
        """See ``ports.mirror.Mirror``."""
        ...

    def covering(self) -> Mapping[tuple[str, str], Covered]:
        """See ``ports.mirror.Mirror``. Nobody else changes the record until the transaction ends."""
        ...

    def note_covered(self, target: JoinedTarget, covered: Covered) -> None:
        """Notes what of a target is covered, in the place of what was noted."""
        ...

    def forget_covered(self, target: JoinedTarget) -> None:
        """Notes nothing of it any more."""
        ...

    def is_empty(self, table: TargetTable) -> bool:
        """See ``ports.mirror.Mirror``."""
        ...
