"""The names that columns get further on in the log.

A layout in the log has the names of its place. The catalog, and a mapping that was adapted to it, have those that
the columns got later. Which is which say the statements in between: RENAME COLUMN leaves a column what it is. CHANGE
may give it other values as well, so what it names is another column here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.statements.statements import Statement
from migrator.model.table import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class Renaming:
    """A statement that gives columns of a table other names: new ones by old ones, those in small letters.

    ``order``: its place in the log.
    """

    table: TableId
    names: Mapping[str, str]
    order: int


@dataclass(frozen=True, slots=True)
class Renamings:
    """The renamings of captured tables' columns up to a place in the log, in its order."""

    found: Sequence[Renaming] = ()
    end: int = -1

    def behind(self, order: int) -> list[Renaming]:
        """Returns those behind a place."""
        return [one for one in self.found if one.order > order]


LookAhead = Callable[[Track], Renamings]
"""Reads the log from the last transaction of a track to the end."""


def renamings(statements: Iterable[tuple[Statement, int]], end: int) -> Renamings:
    """Returns those among statements and their places, which were read up to ``end``."""
    found = (
        Renaming(one.tables[0], {old.lower(): new for old, new in one.renamed}, order)
        for one, order in statements
        if one.renamed
    )
    return Renamings(tuple(found), end)


def last_name(found: Iterable[Renaming], table: TableId, name: str) -> str:
    """Returns the name that a column has after all of these."""
    for one in found:
        if one.table == table:
            name = one.names.get(name.lower(), name)
    return name


def needed_later(found: Sequence[Renaming], schema: TableSchema, columns: Iterable[str]) -> dict[str, str]:
    """Returns later names by present ones, of the columns whose later name is another that a mapping needs."""
    later = {name: last_name(found, schema.id, name) for name in columns}
    return {name: new for name, new in later.items() if new != name and schema.needs(new)}
