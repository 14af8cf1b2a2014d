"""The SQL of the mirror, as text. Pure: identifiers quoted, no values inside.

Temporary tables name their columns by place: ``c3`` is the fourth column that the source table's mirror has. A lookup
in the mirror is a ``LATERAL`` subquery that can't be flattened (``OFFSET 0``): one index lookup per row, whatever the
planner believes about temporary tables without statistics. So its cost follows the rows changed, not the table.

Tracing and collecting go over the rows of both states at once, the mirror as it is now and what the batch took out of
it. A path in either state is a path there, so nothing is missed; a path that mixes both finds rows that needn't be
looked at, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrator.adapters.target_postgres.merge import quoted
from migrator.adapters.target_postgres.mirror_tables import number_of
from migrator.model.reach import Reach
from migrator.model.table import TableId, TableSchema

NUMBER = '"~number"'


@dataclass(frozen=True, slots=True)
class Mirrored:
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

    def places(self, names: Sequence[str], alias: str = "") -> list[str]:
        """The columns of a temporary table."""
        prefix = f"{alias}." if alias else ""
        return [f"{prefix}c{self.columns.index(name)}" for name in names]

    def named(self, names: Sequence[str], alias: str) -> list[str]:
        """The columns of the mirror's table."""
        return [f"{alias}.{quoted(name)}" for name in names]

    @property
    def key(self) -> tuple[str, ...]:
        """The source table's key."""
        return self.schema.key

    def lookup(self, names: Sequence[str], by: Sequence[str], values: Sequence[str]) -> str:
        """``LATERAL`` subquery ``m``: the columns ``names``, by place, of the rows where ``by`` has these values."""
        taken = ", ".join(f"i.{quoted(name)} AS {self.places([name])[0]}" for name in names)
        same = " AND ".join(f"i.{quoted(name)} = {value}" for name, value in zip(by, values, strict=True))
        return f"CROSS JOIN LATERAL (SELECT {taken} FROM {self.table} i WHERE {same} OFFSET 0) m"

    # -- moving the mirror

    def net_chunk(self) -> str:
        """Removes dump rows whose key the log touches: the log is later."""
        ours = ", ".join(self.places(self.key, "s"))
        keys = ", ".join(self.places(self.key))
        return (
            f"DELETE FROM {self.staged} s WHERE s.chunk AND ({ours}) IN (SELECT {keys} FROM {self.gone}"
            f" UNION ALL SELECT {keys} FROM {self.staged} WHERE NOT chunk)"
        )

    def keep_before(self) -> str:
        """Keeps the rows that are about to change, as the mirror has them."""
        keys = ", ".join(self.places(self.key))
        every = ", ".join(self.places(self.columns, "m"))
        lookup = self.lookup(self.columns, self.key, self.places(self.key, "k"))
        return (
            f"INSERT INTO {self.before} SELECT {every} FROM"
            f" (SELECT {keys} FROM {self.staged} UNION SELECT {keys} FROM {self.gone}) k {lookup}"
        )

    def delete(self) -> str:
        """Deletes the rows whose keys vanish."""
        keys = ", ".join(self.places(self.key))
        same = " AND ".join(
            f"i.{quoted(name)} = {place}"
            for name, place in zip(self.key, self.places(self.key, "k"), strict=True)
        )
        gone = f"SELECT {keys} FROM {self.gone} EXCEPT SELECT {keys} FROM {self.staged}"
        found = f"CROSS JOIN LATERAL (SELECT i.ctid AS at FROM {self.table} i WHERE {same} OFFSET 0) m"
        return f"DELETE FROM {self.table} WHERE ctid = ANY (ARRAY(SELECT m.at FROM ({gone}) k {found}))"

    def upsert(self) -> str:
        """Inserts or updates the staged rows."""
        names = ", ".join(quoted(name) for name in self.columns)
        values = ", ".join(self.places(self.columns, "s"))
        keys = ", ".join(quoted(name) for name in self.key)
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
        pairs = zip(self.named(self.key, "t"), self.places(self.key, "v"), strict=True)
        same = " AND ".join(f"{a} = {b}" for a, b in pairs)
        known, wanted = (", ".join(one) for one in (self.named(names, "t"), self.places(names, "v")))
        return (
            f"UPDATE {self.table} t SET {sets} FROM {load} v WHERE {same}"
            f" AND ROW({known}) IS DISTINCT FROM ROW({wanted})"
        )

    # -- reading it

    def now(self, keys: str) -> str:
        """The rows of ``keys`` as they are now: whether the batch changed each, then all columns."""
        every = ", ".join(self.places(self.columns, "m"))
        lookup = self.lookup(self.columns, self.key, self.places(self.key, "k"))
        if not self.staged:
            return f"SELECT false, {every} FROM ({keys}) k {lookup}"
        same = " AND ".join(
            f"{a} = {b}" for a, b in zip(self.places(self.key, "c"), self.places(self.key, "k"), strict=True)
        )
        own = ", ".join(self.places(self.key))
        return (
            f"SELECT c.changed IS NOT NULL, {every} FROM ({keys}) k LEFT JOIN"
            f" (SELECT true AS changed, {own} FROM {self.staged}) c ON {same} {lookup}"
        )

    def then(self, keys: str) -> str:
        """The rows of ``keys`` that the batch changed, as they were: all columns."""
        same = " AND ".join(
            f"{a} = {b}" for a, b in zip(self.places(self.key, "b"), self.places(self.key, "k"), strict=True)
        )
        return f"SELECT {', '.join(self.places(self.columns, 'b'))} FROM {self.before} b JOIN ({keys}) k ON {same}"


class ReachSql:
    """The statements that follow one reach.

    Args:
        reach: of a joined target.
        tables: mirrored tables by source table name; those that the batch doesn't change have no temporary tables.
        up: per node, the temporary table of values by which the node above is found; the first holds grain numbers,
            or keys where the grain is computed.
        down: per node, the temporary table of keys and of the values by which nodes below are found.
        part: temporary table of the grain numbers of one slice.
        numbers: quoted name of a computed grain's table, or empty.
        numbers_before: the numbers that touched rows had, where the grain is computed.
    """

    def __init__(
        self, reach: Reach, tables: dict[str, Mirrored], up: Sequence[str], down: Sequence[str], part: str,
        numbers: str = "", numbers_before: str = "",
    ):  # fmt: skip
        self._reach = reach
        self._tables = tables
        self._up, self._down, self._part = up, down, part
        self._numbers, self._numbers_before = numbers, numbers_before

    @property
    def root(self) -> TableId:
        """The grain's table."""
        return self._reach.root.schema.id

    def _table(self, index: int) -> Mirrored:
        return self._tables[self._reach.nodes[index].schema.id.name]

    def trace(self) -> Iterator[str]:
        """From every changed row up to the grain's table, the farthest nodes first."""
        for index in reversed(range(len(self._reach.nodes))):
            table = self._table(index)
            if table.staged:
                for changed in (table.staged, table.before):
                    yield self._climb(index, f"{changed} m")
            for child in self._reach.below(index):
                node = self._reach.nodes[child]
                came = self._tables[node.schema.id.name].places(node.columns, "x")
                met = f"(SELECT DISTINCT * FROM {self._up[child]}) x"
                wanted = self._needed(index)
                yield self._climb(index, f"{met} {table.lookup(wanted, node.above_columns, came)}")
                if table.before:
                    pairs = zip(table.places(node.above_columns, "m"), came, strict=True)
                    same = " AND ".join(f"{a} = {b}" for a, b in pairs)
                    yield self._climb(index, f"{met} JOIN {table.before} m ON {same}")

    def _needed(self, index: int) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys([*self._reach.up_columns(index), *(self._reach.grain if index == 0 else ())])
        )

    def _climb(self, index: int, rows: str) -> str:
        table = self._table(index)
        if index == 0 and self._reach.grain:
            number = number_of(table.places(self._reach.grain, "m"))
            return f"INSERT INTO {self._up[0]} SELECT DISTINCT {number} FROM {rows}"
        values = ", ".join(table.places(self._reach.up_columns(index), "m"))
        return f"INSERT INTO {self._up[index]} SELECT DISTINCT {values} FROM {rows}"

    def touched_numbers(self) -> Iterator[str]:
        """Of a computed grain: keeps the numbers that touched rows have had. Its new ones come from ``renumber``."""
        table = self._table(0)
        yield (
            f"INSERT INTO {self._numbers_before} SELECT {', '.join(table.places(table.key, 'x'))}, n.{NUMBER}"
            f" FROM (SELECT DISTINCT * FROM {self._up[0]}) x CROSS JOIN LATERAL"
            f" (SELECT i.{NUMBER} FROM {self._numbers} i WHERE {self._numbered('i', 'x')} OFFSET 0) n"
        )

    def _numbered(self, alias: str, other: str) -> str:
        table = self._table(0)
        pairs = zip(table.named(table.key, alias), table.places(table.key, other), strict=True)
        return " AND ".join(f"{a} = {b}" for a, b in pairs)

    def collect(self) -> Iterator[str]:
        """From the grains of a slice down to every row they depend on, the grain's table first."""
        yield from self._collect_roots()
        for index in range(1, len(self._reach.nodes)):
            node = self._reach.nodes[index]
            assert node.above is not None
            table, above = self._table(index), self._table(node.above)
            came = above.places(node.above_columns)
            met = f"(SELECT DISTINCT {', '.join(came)} FROM {self._down[node.above]}) x"
            values = [f"x.{place}" for place in came]
            wanted = self._reach.down_columns(index)
            yield self._gather(index, f"{met} {table.lookup(wanted, node.columns, values)}")
            if table.before:
                pairs = zip(table.places(node.columns, "m"), values, strict=True)
                same = " AND ".join(f"{a} = {b}" for a, b in pairs)
                yield self._gather(index, f"{met} JOIN {table.before} m ON {same}")

    def _collect_roots(self) -> Iterator[str]:
        table, wanted = self._table(0), self._reach.down_columns(0)
        if self._reach.grain:
            taken = ", ".join(f"i.{quoted(name)} AS {table.places([name])[0]}" for name in wanted)
            number = number_of(table.named(self._reach.grain, "i"))
            yield self._gather(
                0,
                f"{self._part} p CROSS JOIN LATERAL"
                f" (SELECT {taken} FROM {table.table} i WHERE {number} = p.number OFFSET 0) m",
            )
            if table.before:
                number = number_of(table.places(self._reach.grain, "m"))
                yield self._gather(0, f"{self._part} p JOIN {table.before} m ON {number} = p.number")
            return
        keys = ", ".join(f"i.{quoted(name)} AS {table.places([name])[0]}" for name in table.key)
        before = ", ".join(table.places(table.key, "b"))
        own = ", ".join(table.places(table.key))
        found = (
            f"(SELECT {own} FROM {self._part} p CROSS JOIN LATERAL"
            f" (SELECT {keys} FROM {self._numbers} i WHERE i.{NUMBER} = p.number OFFSET 0) n"
            f" UNION SELECT {before} FROM {self._numbers_before} b JOIN {self._part} p ON b.number = p.number) k"
        )
        values = table.places(table.key, "k")
        yield self._gather(0, f"{found} {table.lookup(wanted, table.key, values)}")
        if table.before:
            same = " AND ".join(
                f"{a} = {b}" for a, b in zip(table.places(table.key, "m"), values, strict=True)
            )
            yield self._gather(0, f"{found} JOIN {table.before} m ON {same}")

    def _gather(self, index: int, rows: str) -> str:
        values = ", ".join(self._table(index).places(self._reach.down_columns(index), "m"))
        return f"INSERT INTO {self._down[index]} SELECT DISTINCT {values} FROM {rows}"

    def root_keys(self) -> tuple[str, str, str]:
        """Keys of the rows of the grain's table that belong to the slice: now, then, and then among changed rows.

        A row may belong to another grain now than it did then.
        """
        table = self._table(0)
        own = ", ".join(table.places(table.key))
        if self._reach.grain:
            taken = ", ".join(f"i.{quoted(name)} AS {table.places([name])[0]}" for name in table.key)
            number = number_of(table.named(self._reach.grain, "i"))
            now = (
                f"SELECT {own} FROM {self._part} p CROSS JOIN LATERAL"
                f" (SELECT {taken} FROM {table.table} i WHERE {number} = p.number OFFSET 0) m"
            )
            if not table.before:
                return now, now, f"{now} WHERE false"
            number = number_of(table.places(self._reach.grain, "b"))
            keys = ", ".join(table.places(table.key, "b"))
            return now, now, f"SELECT {keys} FROM {table.before} b JOIN {self._part} p ON p.number = {number}"
        keys = ", ".join(f"i.{quoted(name)} AS {table.places([name])[0]}" for name in table.key)
        now = (
            f"SELECT {own} FROM {self._part} p CROSS JOIN LATERAL"
            f" (SELECT {keys} FROM {self._numbers} i WHERE i.{NUMBER} = p.number OFFSET 0) n"
        )
        before = ", ".join(table.places(table.key, "b"))
        then = (
            f"(({now}) EXCEPT SELECT {own} FROM {self._up[0]}) UNION"
            f" SELECT {before} FROM {self._numbers_before} b JOIN {self._part} p ON b.number = p.number"
        )
        return now, then, then

    def keys_of(self, source: str) -> list[str]:
        """Queries of the keys collected of a source table; none if the reach doesn't meet it."""
        if source not in self._tables:
            return []
        table = self._tables[source]
        own = ", ".join(table.places(table.key))
        return [
            f"SELECT DISTINCT {own} FROM {self._down[index]}"
            for index, node in enumerate(self._reach.nodes)
            if node.schema.id.name == source
        ]
