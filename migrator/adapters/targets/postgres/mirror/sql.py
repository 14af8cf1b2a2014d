"""The mirror's SQL where it is PostgreSQL's own. Pure: identifiers quoted, no values inside.

Temporary tables name their columns by place: ``c3`` is the fourth column that the source table's mirror has.
A lookup in the mirror is a ``LATERAL`` subquery that can't be flattened (``OFFSET 0``): one index lookup per
row, whatever the planner believes about temporary tables without statistics. So its cost follows the rows
changed, not the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.adapters.targets.postgres.mirror.keys import found, indexed
from migrator.adapters.targets.postgres.mirror.tables import NUMBER, number_of, sql_type
from migrator.adapters.targets.postgres.rows.merge import quoted
from migrator.adapters.targets.shared.mirror.mirrored import Mirrored, Typed


@dataclass(frozen=True, slots=True)
class PostgresMirrored(Mirrored):
    """One mirrored table and the statements about it."""

    def places(self, names: Sequence[str], alias: str = "") -> list[str]:
        """The columns of a temporary table."""
        prefix = f"{alias}." if alias else ""
        return [f"{prefix}c{self.columns.index(name)}" for name in names]

    def named(self, names: Sequence[str], alias: str) -> list[str]:
        """The columns of the mirror's table."""
        return [f"{alias}.{quoted(name)}" for name in names]

    def typed(self, names: Sequence[str] | None = None) -> Typed:
        """Columns of a temporary table: by place, with their types."""
        types = {column.name: sql_type(column) for column in self.schema.columns}
        wanted = self.columns if names is None else names
        return tuple(zip(self.places(wanted), (types[name] for name in wanted), strict=True))

    def lookup(self, names: Sequence[str], by: Sequence[str], values: Sequence[str]) -> str:
        """``LATERAL`` subquery ``m``: the columns ``names``, by place, of the rows where ``by`` has these
        values."""
        return self._lateral("m", names, self.table, found(self.schema, by, self.named(by, "i"), values))

    def of_grain(self, names: Sequence[str], grain: Sequence[str], number: str, shared: bool) -> str:
        """``LATERAL`` subquery ``m``: the columns ``names``, by place, of the rows whose grain has this number."""
        own = number_of(self.schema, grain, self.named(grain, "i"), shared)
        return self._lateral("m", names, self.table, f"{own} = {number}")

    def number_of(self, grain: Sequence[str], alias: str, shared: bool) -> str:
        """A grain's number in a temporary table's row."""
        return number_of(self.schema, grain, self.places(grain, alias), shared)

    def grains(self, grain: Sequence[str], shared: bool) -> tuple[str, str]:
        """The mirror's table, and the number in its row."""
        return f"{self.table} m", number_of(self.schema, grain, self.named(grain, "m"), shared)

    def numbers_of(self, numbers: str) -> tuple[str, str]:
        """The table of numbers, and the number in its row."""
        return f"{numbers} m", f"m.{NUMBER}"

    def number_by_key(self, numbers: str, alias: str) -> str:
        """``LATERAL`` subquery ``n``: the numbers of rows with these keys."""
        same = self._keyed("i", self.places(self.key, alias))
        return f"CROSS JOIN LATERAL (SELECT i.{NUMBER} AS number FROM {numbers} i WHERE {same} OFFSET 0) n"

    def keys_by_number(self, numbers: str, number: str) -> str:
        """``LATERAL`` subquery ``n``: the keys that have this number."""
        return self._lateral("n", self.key, numbers, f"i.{NUMBER} = {number}")

    def _lateral(self, alias: str, names: Sequence[str], table: str, where: str) -> str:
        taken = ", ".join(f"i.{quoted(name)} AS {self.places([name])[0]}" for name in names)
        return f"CROSS JOIN LATERAL (SELECT {taken} FROM {table} i WHERE {where} OFFSET 0) {alias}"

    # -- moving the mirror

    def net_chunk(self) -> list[str]:
        """Removes dump rows whose key the log touches: the log is later."""
        ours = ", ".join(self.places(self.key, "s"))
        keys = ", ".join(self.places(self.key))
        return [
            f"DELETE FROM {self.staged} s WHERE s.chunk AND ({ours}) IN (SELECT {keys} FROM {self.gone}"
            f" UNION ALL SELECT {keys} FROM {self.staged} WHERE NOT chunk)"
        ]

    def delete(self) -> str:
        """Deletes the rows whose keys vanish."""
        keys = ", ".join(self.places(self.key))
        same = self._keyed("i", self.places(self.key, "k"))
        gone = f"SELECT {keys} FROM {self.gone} EXCEPT SELECT {keys} FROM {self.staged}"
        there = f"CROSS JOIN LATERAL (SELECT i.ctid AS at FROM {self.table} i WHERE {same} OFFSET 0) m"
        return f"DELETE FROM {self.table} WHERE ctid = ANY (ARRAY(SELECT m.at FROM ({gone}) k {there}))"

    def upsert(self) -> str:
        """Inserts or updates the staged rows."""
        names = ", ".join(quoted(name) for name in self.columns)
        values = ", ".join(self.places(self.columns, "s"))
        keys = ", ".join(indexed(self.schema, self.key, list(map(quoted, self.key))))
        sets = ", ".join(f"{quoted(n)} = excluded.{quoted(n)}" for n in self.columns if n not in self.key)
        action = f"UPDATE SET {sets}" if sets else "NOTHING"
        return (
            f"INSERT INTO {self.table} ({names}) SELECT {values} FROM {self.staged} s"
            f" ON CONFLICT ({keys}) DO {action}"
        )

    def revalue(self, load: str, names: Sequence[str]) -> str:
        """Sets computed values of the rows in a temporary table of keys and values, where they are others."""
        sets = ", ".join(
            f"{quoted(name)} = v.{place}" for name, place in zip(names, self.places(names), strict=True)
        )
        same = self._keyed("t", self.places(self.key, "v"))
        known, wanted = (", ".join(one) for one in (self.named(names, "t"), self.places(names, "v")))
        return (
            f"UPDATE {self.table} t SET {sets} FROM {load} v WHERE {same}"
            f" AND ROW({known}) IS DISTINCT FROM ROW({wanted})"
        )

    def delete_numbers(self, numbers: str, keys: str) -> str:
        """Deletes the numbers of these keys."""
        return (
            f"DELETE FROM {numbers} n USING ({keys}) k WHERE {self._keyed('n', self.places(self.key, 'k'))}"
        )

    def _keyed(self, alias: str, values: Sequence[str]) -> str:
        """The row ``alias`` of a table with this one's key has these values as its key."""
        return found(self.schema, self.key, self.named(self.key, alias), values)
