"""Facts that a writer knows about a target table beyond ``TargetTable``, as far as engines don't differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable


class StoredColumn(Protocol):
    """The storage of one column."""

    @property
    def column(self) -> TargetColumn:
        """The column as the other stations see it."""
        ...

    @property
    def exact(self) -> bool:
        """Tells whether values that the server takes for equal always look the same."""
        ...

    @property
    def collation(self) -> str:
        """The name of the collation by which values are compared; empty for types without one."""
        ...


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key: its name, and the columns of both tables in pairs."""

    name: str
    child: TableId
    child_columns: tuple[str, ...]
    parent: TableId
    parent_columns: tuple[str, ...]


StorageT = TypeVar("StorageT", bound=StoredColumn)
KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class TableStructure(Generic[StorageT, KeyT]):
    """A target table as the writer needs it.

    Attributes:
        table: as the other stations see it.
        storage: one per column, in order.
        outgoing: foreign keys of this table.
        incoming: foreign keys of any table that point here.
    """

    table: TargetTable
    storage: tuple[StorageT, ...]
    outgoing: tuple[KeyT, ...] = ()
    incoming: tuple[KeyT, ...] = ()

    def column(self, name: str) -> StorageT | None:
        """Storage of the column of that name, if there is one."""
        return next((one for one in self.storage if one.column.name == name), None)

    def inexact_key(self) -> tuple[StorageT, ...]:
        """The key's columns whose values may be one though they look different."""
        storages = [self.column(name) for name in self.table.key]
        return tuple(one for one in storages if one is not None and not one.exact)

    def key_compares(self) -> str:
        """Describes how the key's inexact columns compare, for messages."""
        return ", ".join(
            f"{one.column.name} ({one.column.native_type})"
            + (f" by collation {one.collation}" if one.collation else "")
            for one in self.inexact_key()
        )

    def kept(self, written: tuple[str, ...]) -> tuple[str, ...]:
        """Columns that are neither written by the mapping nor computed: a rewritten row must keep their values."""
        return tuple(
            one.column.name
            for one in self.storage
            if one.column.name not in written and not one.column.generated
        )
