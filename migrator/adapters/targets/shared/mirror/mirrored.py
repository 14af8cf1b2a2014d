"""One table of the mirror and the statements about it. What engines write differently is left to their adapters.

Temporary tables name their columns by ``places``. No statement names a temporary table twice: MySQL refuses that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from migrator.model.table import TableSchema

Typed = tuple[tuple[str, str], ...]
"""Columns of a temporary table: name and SQL type."""


@dataclass(frozen=True, slots=True)
class Mirrored(ABC):
    """One mirrored table and the temporary tables of the batch at hand.

    Attributes:
        schema: the source table.
        columns: columns that the mirror has, in the order of their places.
        table: quoted name of the mirror's table.
        staged: dump rows and rows of the log: ``chunk``, then all columns.
        gone: keys of before images.
        before: rows that the batch changes, as they were; all columns.
    """

    schema: TableSchema
    columns: tuple[str, ...]
    table: str
    staged: str = ""
    gone: str = ""
    before: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """The source table's key."""
        return self.schema.key

    @abstractmethod
    def places(self, names: Sequence[str], alias: str = "") -> list[str]:
        """Returns these columns' names in a temporary table, and in what the lookups below find."""

    @abstractmethod
    def typed(self, names: Sequence[str] | None = None) -> Typed:
        """Columns of a temporary table, all if not named; by place, with their types."""

    # -- lookups: joined to rows before them, by an index, one search per row whatever the planner believes

    @abstractmethod
    def lookup(self, names: Sequence[str], by: Sequence[str], values: Sequence[str]) -> str:
        """Joins ``m``: the columns ``names``, by place, of the mirror's rows where ``by`` has these values."""

    @abstractmethod
    def of_grain(self, names: Sequence[str], grain: Sequence[str], number: str, shared: bool) -> str:
        """Joins ``m``: the columns ``names``, by place, of the mirror's rows whose grain has this number."""

    @abstractmethod
    def number_of(self, grain: Sequence[str], alias: str, shared: bool) -> str:
        """A grain's number in a temporary table's row: equal values have equal numbers, NULLs included.

        Different values may share one: then more grains are looked at than were touched, which changes nothing.
        ``shared``: values of columns of other tables have the same numbers, if their types are the same.
        """

    @abstractmethod
    def grains(self, grain: Sequence[str], shared: bool) -> tuple[str, str]:
        """The rows that have grains' numbers, by an index in the order of these, and the number in one of them."""

    @abstractmethod
    def numbers_of(self, numbers: str) -> tuple[str, str]:
        """The same of a computed grain."""

    @abstractmethod
    def number_by_key(self, numbers: str, alias: str) -> str:
        """Joins ``n``, with a column ``number``: the numbers of a computed grain of rows with these keys."""

    @abstractmethod
    def keys_by_number(self, numbers: str, number: str) -> str:
        """Joins ``n``: the keys, by place, that a computed grain has under this number."""

    # -- moving

    @abstractmethod
    def net_chunk(self) -> list[str]:
        """Removes dump rows whose key the log touches: the log is later."""

    @abstractmethod
    def delete(self) -> str:
        """Deletes the rows whose keys vanish."""

    @abstractmethod
    def upsert(self) -> str:
        """Inserts or updates the staged rows."""

    @abstractmethod
    def revalue(self, load: str, names: Sequence[str]) -> str:
        """Sets computed values of the rows in a temporary table of keys and values, where they are others."""

    @abstractmethod
    def delete_numbers(self, numbers: str, keys: str) -> str:
        """Deletes the numbers of a computed grain of these keys."""

    def keep_before(self) -> str:
        """Keeps the rows that are about to change, as the mirror has them."""
        keys = ", ".join(self.places(self.key))
        every = ", ".join(self.places(self.columns, "m"))
        lookup = self.lookup(self.columns, self.key, self.places(self.key, "k"))
        return (
            f"INSERT INTO {self.before} SELECT {every} FROM"
            f" (SELECT {keys} FROM {self.staged} UNION SELECT {keys} FROM {self.gone}) k {lookup}"
        )

    def keep_whole(self) -> str:
        """Keeps every row that the mirror has."""
        values = ", ".join(self.named(self.columns, "m"))
        return f"INSERT INTO {self.before} SELECT {values} FROM {self.table} m"

    # -- reading

    def now(self, keys: str) -> str:
        """The rows of ``keys`` as they are now: whether the batch changed each, then all columns."""
        lookup = self.lookup(self.columns, self.key, self.places(self.key, "k"))
        return self._flagged(f"({keys}) k {lookup}")

    def now_of_grain(self, numbers: str, grain: Sequence[str], shared: bool) -> str:
        """The same of the rows whose grain's number is in a temporary table."""
        return self._flagged(f"{numbers} p {self.of_grain(self.columns, grain, 'p.number', shared)}")

    def _flagged(self, found: str) -> str:
        every = ", ".join(self.places(self.columns, "m"))
        if not self.staged:
            return f"SELECT false, {every} FROM {found}"
        (first, *_) = self.places(self.key, "c")
        return (
            f"SELECT {first} IS NOT NULL, {every} FROM {found}"
            f" LEFT JOIN {self.staged} c ON {self.same('c', 'm')}"
        )

    def then(self, keys: str) -> str:
        """The rows of ``keys`` that the batch changed, as they were: all columns."""
        values = ", ".join(self.places(self.columns, "b"))
        return f"SELECT {values} FROM {self.before} b JOIN ({keys}) k ON {self.same('b', 'k')}"

    def whole(self) -> str:
        """All rows of the mirror's table, all columns."""
        return f"SELECT {', '.join(self.named(self.columns, 'm'))} FROM {self.table} m"

    @abstractmethod
    def named(self, names: Sequence[str], alias: str) -> list[str]:
        """Returns these columns' names in the mirror's table itself."""

    def same(self, one: str, other: str) -> str:
        """Two rows by place have one key."""
        return equal(self.places(self.key, one), self.places(self.key, other))


def equal(ones: Sequence[str], others: Sequence[str]) -> str:
    """Pairwise equality."""
    return " AND ".join(f"{a} = {b}" for a, b in zip(ones, others, strict=True))
