"""Source tables: identity, columns, keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

OURS = "__"
"""The prefix of the names of our own columns that stand beside a source's."""
OURS_ONLY = "names beginning with two underscores are ours"
NONDETERMINISTIC = "(nondeterministic)"
"""Ends the name of a PostgreSQL collation by which texts of other characters may be equal."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, order=True, slots=True)
class TableId:
    """A table's name within its database. ``schema`` is the database name on MySQL and MariaDB."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a source table.

    Attributes:
        name: as the source spells it.
        type: logical type, one of ``bool int8 int16 int32 int64 float32 float64 decimal(p,s) string binary date
            timestamp timestamptz``. Native where exact, else ``string`` holding the server's canonical text.
        nullable: whether the source allows NULL.
        source_type: the type as the source declares it, e.g. ``character varying(20)``.
        collation: the collation of a text column, if the source names one.
    """

    name: str
    type: str
    nullable: bool
    source_type: str
    collation: str = ""

    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale when the logical type is a decimal."""
        found = _DECIMAL.fullmatch(self.type)
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class TableSchema:
    """The row schema that travels with every event of a table.

    Attributes:
        id: the table.
        columns: of its rows, in order.
        key: names of the columns that tell a row from all others.
        needed: names of the columns that a mapping reads, or by which it links rows; None where all of them count.
            What becomes of any other column stops nobody. No part of the structure: two schemas that differ in it
            only are equal.
        order: all that decides how the values of each key column sort, beside its type, where the server says so:
            the name of a collation or enum may mean another one by now. No part of the structure either.
    """

    id: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    needed: frozenset[str] | None = field(default=None, compare=False)
    order: tuple[str, ...] = field(default=(), compare=False)

    def needs(self, name: str) -> bool:
        """Tells whether something depends on a column's values."""
        return self.needed is None or name in self.needed or name in self.key

    def without(self, names: Collection[str]) -> TableSchema:
        """The same without some of its columns."""
        return replace(self, columns=tuple(one for one in self.columns if one.name not in names))

    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def key_indexes(self) -> tuple[int, ...]:
        """Places of the key columns in a row."""
        names = self.names()
        return tuple(names.index(name) for name in self.key)

    def unfit_names(self) -> dict[str, str]:
        """The columns whose names can't be used, each with the reason."""
        unfit: dict[str, str] = {}
        spelt: dict[str, str] = {}
        for name in self.names():
            other = spelt.setdefault(name.lower(), name)
            if other != name:
                unfit[name] = (
                    f"it differs from column {other!r} in case only, which Spark does not tell apart"
                )
            if name.startswith(OURS):
                unfit[name] = OURS_ONLY
        return unfit

    def version(self) -> str:
        """A short digest that changes whenever names, types or the key change."""
        text = repr([(c.name, c.type, c.source_type) for c in self.columns] + [self.key])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def needed_in(schemas: Iterable[TableSchema]) -> Callable[[TableId, str], bool]:
    """Returns what tells whether something depends on the values of a table's column."""
    by_id = {schema.id: schema for schema in schemas}
    return lambda table, column: table in by_id and by_id[table].needs(column)
