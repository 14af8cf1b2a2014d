"""The mirror's SQL where it is that of MySQL and MariaDB. Pure: identifiers quoted, no values inside.

Columns are called in temporary tables as in the mirror. A lookup is a ``STRAIGHT_JOIN`` with the index named: one
index lookup per row, whatever the planner believes about temporary tables. So its cost follows the rows changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.adapters.targets.mysql.mirror.keys import found, index_of
from migrator.adapters.targets.mysql.mirror.names import grain_column, index_name, place
from migrator.adapters.targets.mysql.mirror.values import column_of, sql_type
from migrator.adapters.targets.mysql.rows.merge import quoted
from migrator.adapters.targets.shared.mirror.mirrored import Mirrored, Typed

BY_NUMBER = "by_number"


@dataclass(frozen=True, slots=True)
class MysqlMirrored(Mirrored):
    """One mirrored table and the statements about it."""

    def places(self, names: Sequence[str], alias: str = "") -> list[str]:
        """The columns of a temporary table, and of the mirror's."""
        prefix = f"{alias}." if alias else ""
        return [prefix + place(name) for name in names]

    def named(self, names: Sequence[str], alias: str) -> list[str]:
        """The same."""
        return self.places(names, alias)

    def typed(self, names: Sequence[str] | None = None) -> Typed:
        """Columns of a temporary table with their types."""
        return tuple(
            (place(name), sql_type(column_of(self.schema, name)))
            for name in (self.columns if names is None else names)
        )

    def lookup(self, names: Sequence[str], by: Sequence[str], values: Sequence[str]) -> str:
        """Joins the mirror's table ``m`` by these columns."""
        return self._found(self.table, "m", by, values)

    def of_grain(self, names: Sequence[str], grain: Sequence[str], number: str, shared: bool) -> str:
        """Joins the mirror's table ``m`` by a grain's number."""
        column = grain_column(grain)
        return _joined(self.table, "m", index_name([column]), f"m.{quoted(column)} = {number}")

    def number_of(self, grain: Sequence[str], alias: str, shared: bool) -> str:
        """A grain's number in a temporary table's row, from values alone: whichever table they are of."""
        return number_of(self.places(grain, alias))

    def grains(self, grain: Sequence[str], shared: bool) -> tuple[str, str]:
        """The mirror's table, and the number in its row."""
        column = grain_column(grain)
        return f"{self.table} m FORCE INDEX ({quoted(index_name([column]))})", f"m.{quoted(column)}"

    def numbers_of(self, numbers: str) -> tuple[str, str]:
        """The table of numbers, and the number in its row."""
        return f"{numbers} m FORCE INDEX ({quoted(BY_NUMBER)})", "m.number"

    def number_by_key(self, numbers: str, alias: str) -> str:
        """Joins the table of numbers ``n`` by key."""
        return self._found(numbers, "n", self.key, self.places(self.key, alias))

    def keys_by_number(self, numbers: str, number: str) -> str:
        """Joins the table of numbers ``n`` by number."""
        return _joined(numbers, "n", BY_NUMBER, f"n.number = {number}")

    # -- moving the mirror

    def net_chunk(self) -> list[str]:
        """Removes dump rows whose key the log touches: the log is later.

        The keys of later rows are added to those gone: a statement may name a temporary table once.
        ``delete`` looks only for keys that aren't staged.
        """
        keys = ", ".join(self.places(self.key))
        return [
            f"INSERT INTO {self.gone} ({keys}) SELECT {keys} FROM {self.staged} WHERE NOT chunk",
            f"DELETE s FROM {self.staged} s JOIN {self.gone} g ON {self.same('s', 'g')} WHERE s.chunk",
        ]

    def delete(self) -> str:
        """Deletes the rows whose keys vanish."""
        staged = f"LEFT JOIN {self.staged} s ON {self.same('s', 'k')}"
        there = self._found(self.table, "m", self.key, self.places(self.key, "k"))
        return f"DELETE m FROM {self.gone} k {staged} {there} WHERE s.chunk IS NULL"

    def upsert(self) -> str:
        """Inserts or updates the staged rows."""
        names = ", ".join(self.places(self.columns))
        rest = [name for name in self.columns if name not in self.key] or list(self.key)
        sets = ", ".join(f"{place(name)} = s.{place(name)}" for name in rest)
        values = ", ".join(self.places(self.columns, "s"))
        return (
            f"INSERT INTO {self.table} ({names}) SELECT {values} FROM {self.staged} s"
            f" ON DUPLICATE KEY UPDATE {sets}"
        )

    def revalue(self, load: str, names: Sequence[str]) -> str:
        """Sets computed values of the rows in a temporary table of keys and values, where they are others."""
        sets = ", ".join(f"m.{place(name)} = v.{place(name)}" for name in names)
        alike = " AND ".join(f"m.{place(name)} <=> v.{place(name)}" for name in names)
        there = self._found(self.table, "m", self.key, self.places(self.key, "v"))
        return f"UPDATE {load} v {there} SET {sets} WHERE NOT ({alike})"

    def delete_numbers(self, numbers: str, keys: str) -> str:
        """Deletes the numbers of these keys."""
        return f"DELETE n FROM ({keys}) k {self._found(numbers, 'n', self.key, self.places(self.key, 'k'))}"

    def _found(self, table: str, alias: str, by: Sequence[str], values: Sequence[str]) -> str:
        """Joins a table of the mirror, or one with this one's key, by these columns."""
        return _joined(table, alias, index_of(self.schema, by), found(self.schema, by, alias, values))


def number_of(places: Sequence[str]) -> str:
    """SQL of a grain's number, from held values: their bytes, or digits, decide."""
    parts = ", '~', ".join(f"IFNULL(CRC32({one}), 'none')" for one in places)
    return f"CRC32(CONCAT({parts}))"


def _joined(table: str, alias: str, index: str, same: str) -> str:
    return f"STRAIGHT_JOIN {table} {alias} FORCE INDEX ({quoted(index)}) ON {same}"
