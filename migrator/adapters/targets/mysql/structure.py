"""Facts that the writer knows about a target table beyond ``TargetTable``: storage of columns, foreign keys,
uniqueness."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable

_INEXACT = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "float", "double"})


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage of one column.

    Attributes:
        column: as the other stations see it.
        base: the type's own name (``int``, ``varchar``, ``enum``, ...).
        declared: the type with modifiers, character set and collation: what a staging column is declared as.
        precision: digits of seconds of a time.
        members: of an enum or set.
        length: bytes of a ``binary(n)`` or ``bit(n)``; 0 for others.
        collation: of characters.
    """

    column: TargetColumn
    base: str
    declared: str
    precision: int = 0
    members: tuple[str, ...] = ()
    length: int = 0
    collation: str = ""

    @property
    def exact(self) -> bool:
        """Tells whether values that the server takes for equal always look the same: not texts, not 0.0 and -0.0."""
        return self.base not in _INEXACT


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key. What it does by itself never happens here (see ``writer``)."""

    name: str
    child: TableId
    child_columns: tuple[str, ...]
    parent: TableId
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """A target table as the writer needs it.

    Attributes:
        table: as the other stations see it.
        storage: one per column, in order.
        outgoing: foreign keys of this table.
        incoming: foreign keys of any table that point here.
        indexes: columns of unique indexes by name, the key's included.
        exclusive: columns that uniqueness beside the key depends on.
    """

    table: TargetTable
    storage: tuple[Storage, ...]
    outgoing: tuple[ForeignKey, ...] = ()
    incoming: tuple[ForeignKey, ...] = ()
    indexes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclusive: frozenset[str] = field(default=frozenset())

    def column(self, name: str) -> Storage | None:
        """Storage of the column of that name, if there is one."""
        return next((one for one in self.storage if one.column.name == name), None)

    def inexact_key(self) -> tuple[Storage, ...]:
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

    def moving(self, written: tuple[str, ...]) -> tuple[str, ...]:
        """Written columns whose change needs the row to be deleted and inserted again.

        The server checks uniqueness row by row, and two rows may swap values.
        """
        return tuple(name for name in written if name in self.exclusive and name not in self.table.key)
