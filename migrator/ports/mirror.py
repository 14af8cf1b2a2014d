"""The mirror: copies of the source tables that joined targets read, beside the target and moved with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from migrator.model.progress import BadRow, Filling
from migrator.model.reach import Reach
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable


@dataclass(frozen=True, slots=True)
class MirrorRows:
    """The changes that a batch makes to one mirrored table.

    Attributes:
        schema: the source table.
        chunks: Parquet files of dump rows; rows of the log are later than they.
        before: images whose keys vanish unless ``after`` has them (``NetDelta.before``), or None.
        after: images that are there afterwards, or None. Both ``pyarrow.Table``.
        emptied: whether every row that the mirror has of it when the batch begins vanishes first.
    """

    schema: TableSchema
    chunks: tuple[str, ...]
    before: Any | None
    after: Any | None
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class JoinedTarget:
    """A target whose rows depend on several source rows. ``columns``: those read of each source table."""

    table: TargetTable
    reaches: tuple[Reach, ...]
    columns: Mapping[str, tuple[str, ...]]

    @property
    def sources(self) -> dict[str, TableSchema]:
        """The source tables it reads, by name."""
        return {name: schema for reach in self.reaches for name, schema in reach.tables().items()}

    def digest(self) -> str:
        """Changes with grain and links: what was kept for others is of no use then."""
        parts = [
            (
                reach.grain,
                reach.name,
                [(n.role, n.schema.id, n.above, n.columns, n.above_columns) for n in reach.nodes],
            )
            for reach in self.reaches
        ]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Sides:
    """Rows of source tables before and after a batch, as ``pyarrow.Table`` by table name.

    They hold every row that the affected grains depend on, and others. Both sides hold versions of the same
    keys, so whatever the mapping makes of the others is the same on both sides.

    ``dumped``: whether dump rows are among them, whose target rows are to be written even where nothing changed.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    dumped: bool


@dataclass(frozen=True, slots=True)
class Covered:
    """The grains of a joined target that are filled, while others aren't.

    All of its first ``reach`` reaches are; of the next one those whose number is at most ``number``, of which None
    has none.
    """

    reach: int
    number: int | None
    filling: Filling

    def bound(self, reach: int) -> int | None:
        """The highest covered number of a reach: ``ALL_NUMBERS`` of one that is covered whole, None of one of which
        nothing is."""
        if reach < self.reach:
            return ALL_NUMBERS
        return self.number if reach == self.reach else None

    def advanced(self, number: int | None, rows: int) -> Covered:
        """The same after another piece.

        Args:
            number: the piece's highest; None where it is the last one of its reach.
            rows: of the grain's tables that the piece covers.
        """
        now = self.filling
        filling = replace(now, pieces=now.pieces + 1, rows=now.rows + rows)
        return Covered(self.reach + (number is None), number, filling)


ALL_NUMBERS = 2**63 - 1
"""The highest number that a grain can have."""


class Mirror(Protocol):
    """The mirror inside a batch's transaction, its own rows moved already. One thread uses it.

    ``aside``: the rows and grains that the ledger names as set aside, read under its lock.
    """

    aside: Sequence[BadRow]

    def filled(self) -> frozenset[tuple[str, str]]:
        """Name and digest of the joined targets that are in step with the mirror."""
        ...

    def mark_filled(self, target: JoinedTarget) -> None:
        """Marks the target as in step from this transaction on."""
        ...

    def covering(self) -> Mapping[tuple[str, str], Covered]:
        """The joined targets that are being filled piece by piece, by name and digest."""
        ...

    def begin_pieces(self, target: JoinedTarget) -> None:
        """Notes that the target is filled piece by piece from this transaction on, and that nothing is covered."""
        ...

    def piece(self, target: JoinedTarget, rows: int) -> Sides:
        """Every row that the next grains depend on, as they are now (``after``); notes that these are covered.

        They come in the order of their numbers, at most so many rows of their tables, and all rows of the last grain;
        fewer where too many other rows hang on them. With the last piece the target is in step.
        """
        ...

    def more_rows(self, target: JoinedTarget, than: int) -> bool:
        """Tells whether the tables of the target's grains have more rows than these. Each grain has at least one."""
        ...

    def is_empty(self, table: TargetTable) -> bool:
        """Tells whether the target table has no row."""
        ...

    def whole(self, schema: TableSchema) -> Iterator[Any]:
        """All rows of a mirrored table, in parts, each a ``pyarrow.Table``."""
        ...

    def touches(self, target: JoinedTarget) -> bool:
        """Tells whether the batch changes anything on which the target depends: rows that come or go, columns that
        its mapping reads, or by which rows are linked. If it doesn't, the target stays as it is.
        """
        ...

    def trace(self, target: JoinedTarget) -> int:
        """Finds the grains that the batch touches, in the state before it and after it; returns how many.

        The values of computed grains must have been brought up to date first (``roots``, ``renumber``).
        """
        ...

    def slices(self, target: JoinedTarget, grains: int) -> Iterator[Sides]:
        """The rows of the grains found by ``trace``, at most so many grains at a time."""
        ...

    def roots(self, reach: Reach, tables: Sequence[str]) -> dict[str, Any] | None:
        """Returns, for a computed grain, touched rows of its table and the rows of ``tables`` linked to them, as they
        are now.

        None when the batch touches none. ``pyarrow.Table`` by table name.
        """
        ...

    def renumber(self, reach: Reach, numbers: Any) -> None:
        """Stores the values of a computed grain for the rows of ``roots``: their key columns, then ``~number``."""
        ...

    def number_all(self, reach: Reach, numbers: Iterator[Any]) -> None:
        """The same for all rows of the grain's table, in parts."""
        ...

    def revalue(self, schema: TableSchema, columns: Sequence[str], rows: Iterator[Any]) -> None:
        """Stores computed values of all rows of a table: their key columns, then ``columns``, in parts."""
        ...

    def stay(self) -> None:
        """Keeps the transaction alive while somebody computes."""
        ...
