"""Values on their way back: old columns, the code that gives one, and an expression that is being peeled. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from transforms.reverse import numbers as arithmetic


@dataclass(frozen=True, slots=True)
class OldColumn:
    """A column of the old table: what forward expressions read, and what the reverse function must give.

    Attributes:
        name, nullable: of the column.
        read: Spark SQL type in which mappings read it.
        wanted: Spark SQL type in which the old database takes it.
        padded: whether the old database itself fills it with blanks.
    """

    name: str
    nullable: bool
    read: str
    wanted: str
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """An old column's value.

    Attributes:
        column: its place.
        code: Python source of a column of Spark.
        notes: what comes back otherwise; empty where nothing does.
        maps: constants that the code names: values by name.
    """

    column: int
    code: str
    notes: tuple[str, ...] = ()
    maps: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Value:
    """The value of an expression that is being peeled.

    Attributes:
        code: Python source of it.
        type: its Spark SQL type; empty where it isn't known.
        blur: by how much it may be off, as an exact number of the value's own unit.
        notes, maps: see ``Restored``.
        checked: whether what no case covers fails, so that nothing else has come through.
    """

    code: str
    type: str
    blur: arithmetic.Blur = arithmetic.SHARP
    notes: tuple[str, ...] = ()
    maps: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    checked: bool = False

    def noted(self, note: str) -> Value:
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))

    def become(self, code: str, kind: str) -> Value:
        """Another value that was made of it."""
        return replace(self, code=code, type=kind)
