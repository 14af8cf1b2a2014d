"""The tables of a database as far as rows are to be made for them: values, and in which order rows go in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name, type: the type as the server writes it, in small letters.
        nullable: whether it takes NULL.
        written: False where the server computes it.
        chosen: the values of an enumeration or set; empty for any other type.
    """

    name: str
    type: str
    nullable: bool
    written: bool = True
    chosen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns that name a row of another table, or of the same one."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. ``checks``: its CHECK constraints as texts. ``unique``: sets of columns, the primary key's first."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """Returns the column of that name."""
        return next(one for one in self.columns if one.name == name)

    def written(self) -> tuple[str, ...]:
        """Names of the columns that are written."""
        return tuple(one.name for one in self.columns if one.written)


def in_order(tables: Mapping[str, Table], names: Collection[str]) -> list[str]:
    """Names such that parents come before children; where they go round, by the fewest parents that are missing."""
    left, found = dict.fromkeys(sorted(names)), list[str]()
    while left:
        missing = {
            name: len({one.parent for one in tables[name].foreign_keys if one.parent in left} - {name})
            for name in left
        }
        first = min(left, key=lambda name: (missing[name], name))
        found.append(first)
        del left[first]
    return found


def linked(table: Table, links: Sequence[str]) -> Table:
    """The table with the links of a mapping as foreign keys, where none of its own has the column.

    ``links``: ``child.column = parent.column``; they are followed from the side that isn't the parent's key.
    """
    known = {column for one in table.foreign_keys for column in one.columns}
    more = []
    for link in links:
        sides = [side.strip().rpartition(".")[::2] for side in link.split("=")]
        if len(sides) != 2:
            continue
        for (child, column), (parent, named) in (sides, sides[::-1]):
            own = any(one.name == column for one in table.columns)
            if (
                child == table.name
                and parent != child
                and own
                and (column,) != table.key
                and column not in known
            ):
                more.append(ForeignKey((column,), parent, (named,)))
                known.add(column)
    return Table(
        table.name, table.columns, table.key, table.unique, (*table.foreign_keys, *more), table.checks
    )
