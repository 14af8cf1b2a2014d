"""Facts that the writer knows about a target table beyond ``TargetTable``: storage of columns, foreign keys,
uniqueness."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrator.adapters.targets.shared.structure import ForeignKey, TableStructure
from migrator.model.target import TargetColumn

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
class Structure(TableStructure[Storage, ForeignKey]):
    """A target table as the writer needs it.

    Attributes:
        table, storage, outgoing, incoming: see ``TableStructure``.
        indexes: columns of unique indexes by name, the key's included.
        exclusive: columns that uniqueness beside the key depends on.
    """

    indexes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclusive: frozenset[str] = field(default=frozenset())

    def moving(self, written: tuple[str, ...]) -> tuple[str, ...]:
        """Written columns whose change needs the row to be deleted and inserted again.

        The server checks uniqueness row by row, and two rows may swap values.
        """
        return tuple(name for name in written if name in self.exclusive and name not in self.table.key)
