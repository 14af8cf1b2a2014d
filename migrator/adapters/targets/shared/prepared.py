"""One table's share of a batch, as far as it is the same on every engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from migrator.columnar.shown import key_text, shown
from migrator.model.table import TableId
from migrator.model.target import TargetTable


class WrittenTable(Protocol):
    """A target table as an engine reads it from the catalogue."""

    @property
    def table(self) -> TargetTable:
        """The table as the rest of the tool knows it."""
        ...


StructureT = TypeVar("StructureT", bound=WrittenTable)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows(Generic[StructureT]):
    """Rows of one target table, encoded and checked, ready to be loaded.

    Attributes:
        structure: the target table.
        strict: whether after rows without a before row must not exist yet.
        source: mapped rows, chunk rows first, then after rows; written columns only.
        chunk_rows: how many of them are chunk rows.
        replaces: whether rows that the table has and the batch hasn't vanish, whatever they are.
    """

    structure: StructureT
    strict: bool
    source: pa.Table
    chunk_rows: int
    replaces: bool = False

    @property
    def id(self) -> TableId:
        """The target table."""
        return self.structure.table.id

    def key_of(self, row: int) -> str:
        """The key of one row, for messages."""
        key = self.structure.table.key
        return key_text(key, [self.source[name][row].as_py() for name in key])

    def value_of(self, row: int | None, column: str) -> str:
        """The value of one row's column, to follow the column's name in messages; empty where it isn't known."""
        if row is None or column not in self.source.column_names:
            return ""
        return f", value {shown(self.source[column][row])!r}"
