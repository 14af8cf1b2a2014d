"""The statements that follow a reach over the mirror. Pure: identifiers quoted, no values inside.

Tracing and collecting go over the rows of both states at once, the mirror as it is now and what the batch
took out of it. A path in either state is a path there, so nothing is missed; a path that mixes both finds
rows that needn't be looked at, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrator.adapters.targets.shared.mirror.mirrored import Mirrored, equal
from migrator.model.reach import Reach
from migrator.model.table import TableId


@dataclass(frozen=True, slots=True)
class RootRows:
    """Queries of the rows of the grain's table that belong to a slice. A row may move between grains.

    Attributes:
        now: the rows as they are, each behind a flag whether the batch changed it.
        then: likewise the rows that belonged to it; no key comes from two of them.
        changed: those that belonged to it and were changed, as they were.
    """

    now: str
    then: tuple[str, ...]
    changed: tuple[str, ...]


class ReachSql:
    """The statements that follow one reach.

    Args:
        reach: of a joined target.
        tables: mirrored tables by source table name; those that the batch doesn't change have no temporary tables.
        up: per node, the temporary table of values by which the node above is found; that of the grain's tables,
            one for all, holds grain numbers, or keys where the grain is computed.
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

    def root_of(self, table: TableId) -> int | None:
        """The node of a table that has the grain; None of others."""
        return next(
            (index for index in self._reach.roots() if self._reach.nodes[index].schema.id == table), None
        )

    def _table(self, index: int) -> Mirrored:
        return self._tables[self._reach.nodes[index].schema.id.name]

    def trace(self) -> Iterator[str]:
        """Traces every changed row up to the grain's table, the farthest nodes first."""
        for index in reversed(range(len(self._reach.nodes))):
            table = self._table(index)
            if table.staged:
                for changed in (table.staged, table.before):
                    yield self._climb(index, f"{changed} m")
            for child in self._reach.below(index):
                if not self._changed(child):
                    continue  # nothing was traced to it
                node = self._reach.nodes[child]
                came = self._tables[node.schema.id.name].places(node.columns, "x")
                met = f"(SELECT DISTINCT * FROM {self._up[child]}) x"
                wanted = self._needed(index)
                yield self._climb(index, f"{met} {table.lookup(wanted, node.above_columns, came)}")
                if table.before:
                    same = equal(table.places(node.above_columns, "m"), came)
                    yield self._climb(index, f"{met} JOIN {table.before} m ON {same}")

    def _changed(self, index: int) -> bool:
        """Tells whether the batch changes a node's table, or one of those below it."""
        return bool(self._table(index).staged) or any(map(self._changed, self._reach.below(index)))

    def _needed(self, index: int) -> tuple[str, ...]:
        root = self._reach.nodes[index].above is None
        own = self._reach.grain_of(index) if root else ()
        return tuple(dict.fromkeys([*self._reach.up_columns(index), *own]))

    def _number(self, index: int, alias: str) -> str:
        """A grain's number in a temporary table's row of a root."""
        return self._table(index).number_of(self._reach.grain_of(index), alias, self._reach.shared)

    def _climb(self, index: int, rows: str) -> str:
        table = self._table(index)
        if self._reach.nodes[index].above is None and self._reach.grain:
            return f"INSERT INTO {self._up[index]} SELECT DISTINCT {self._number(index, 'm')} FROM {rows}"
        values = ", ".join(table.places(self._reach.up_columns(index), "m"))
        return f"INSERT INTO {self._up[index]} SELECT DISTINCT {values} FROM {rows}"

    def touched_keys(self) -> str:
        """Selects keys of those rows of a computed grain's table that may have another number now."""
        return f"SELECT DISTINCT {', '.join(self._keys())} FROM {self._up[0]}"

    def touched_numbers(self) -> str:
        """Keeps the numbers that touched rows of a computed grain have had. Its new ones come from
        ``renumber``."""
        return (
            f"INSERT INTO {self._numbers_before} SELECT {', '.join(self._keys('x'))}, n.number"
            f" FROM ({self.touched_keys()}) x {self._table(0).number_by_key(self._numbers, 'x')}"
        )

    def wanted(self) -> str:
        """The numbers of the touched grains, before and, once they are stored, after."""
        if self._reach.grain:
            return f"SELECT DISTINCT number FROM {self._up[0]}"
        return (
            f"SELECT number FROM {self._numbers_before} UNION SELECT n.number FROM ({self.touched_keys()}) k"
            f" {self._table(0).number_by_key(self._numbers, 'k')}"
        )

    def next_numbers(self, after: int | None, rows: int) -> str:
        """The numbers of the next rows that have the grain, in the order of these: above one, or from the first on.

        Rows are bounded, not numbers: so an index gives them in their order, whatever the planner knows of the table.
        """
        sources = [
            self._table(index).grains(self._reach.grain_of(index), self._reach.shared)
            for index in (self._reach.roots() if self._reach.grain else ())
        ] or [self._table(0).numbers_of(self._numbers)]
        queries: list[str] = []
        for source, number in sources:
            above = "" if after is None else f" WHERE {number} > {after:d}"
            lowest = f"SELECT {number} AS number FROM {source}{above} ORDER BY 1 LIMIT {rows:d}"
            queries.append(f"SELECT number FROM ({lowest}) q{len(queries)}")
        lowest = f"SELECT number FROM ({' UNION ALL '.join(queries)}) a ORDER BY number LIMIT {rows:d}"
        return f"SELECT DISTINCT number FROM ({lowest}) n"

    def nothing(self) -> str:
        """Selects no number."""
        return f"SELECT number FROM {self._part} WHERE false"

    def collect(self) -> Iterator[str]:
        """Collects every row that the grains of a slice depend on, from the grain's table down."""
        yield from self._collect_roots()
        for index, node in enumerate(self._reach.nodes):
            if node.above is None:
                continue
            table, above = self._table(index), self._table(node.above)
            came = above.places(node.above_columns)
            met = f"(SELECT DISTINCT {', '.join(dict.fromkeys(came))} FROM {self._down[node.above]}) x"
            wanted = self._reach.down_columns(index)
            values = above.places(node.above_columns, "x")
            yield self._gather(index, f"{met} {table.lookup(wanted, node.columns, values)}")
            if table.before:
                same = equal(table.places(node.columns, "m"), values)
                yield self._gather(index, f"{met} JOIN {table.before} m ON {same}")

    def _collect_roots(self) -> Iterator[str]:
        if self._reach.grain:
            for index in self._reach.roots():
                yield from self._collect_of_grain(index)
            return
        table, wanted = self._table(0), self._reach.down_columns(0)
        for found in (self._numbered_now(), self._numbered_then()):
            yield self._gather(0, f"({found}) k {table.lookup(wanted, table.key, self._keys('k'))}")
            if table.before:
                yield self._gather(0, f"({found}) k JOIN {table.before} m ON {table.same('m', 'k')}")

    def _collect_of_grain(self, index: int) -> Iterator[str]:
        table, grain = self._table(index), self._reach.grain_of(index)
        there = table.of_grain(self._reach.down_columns(index), grain, "p.number", self._reach.shared)
        yield self._gather(index, f"{self._part} p {there}")
        if table.before:
            number = self._number(index, "m")
            yield self._gather(index, f"{self._part} p JOIN {table.before} m ON {number} = p.number")

    def _numbered_now(self) -> str:
        """Keys that a computed grain has in the slice."""
        joined = self._table(0).keys_by_number(self._numbers, "p.number")
        return f"SELECT {', '.join(self._keys('n'))} FROM {self._part} p {joined}"

    def _numbered_then(self) -> str:
        """Touched keys that it had there."""
        keys = ", ".join(self._keys("b"))
        return f"SELECT {keys} FROM {self._numbers_before} b JOIN {self._part} p ON b.number = p.number"

    def _keys(self, alias: str = "") -> list[str]:
        table = self._table(0)
        return table.places(table.key, alias)

    def _gather(self, index: int, rows: str) -> str:
        values = ", ".join(self._table(index).places(self._reach.down_columns(index), "m"))
        return f"INSERT INTO {self._down[index]} SELECT DISTINCT {values} FROM {rows}"

    def root_rows(self, index: int) -> RootRows:
        """The rows of a table that has the grain which belong to the slice."""
        table = self._table(index)
        if self._reach.grain:
            now = table.now_of_grain(self._part, self._reach.grain_of(index), self._reach.shared)
            if not table.before:
                return RootRows(now, (now,), ())
            number = self._number(index, "b")
            values = ", ".join(table.places(table.columns, "b"))
            changed = f"SELECT {values} FROM {table.before} b JOIN {self._part} p ON p.number = {number}"
            return RootRows(now, (now,), (changed,))
        now, had = self._numbered_now(), self._numbered_then()
        untouched = (
            f"SELECT {', '.join(self._keys('o'))} FROM ({now}) o LEFT JOIN {self._up[0]} t"
            f" ON {table.same('o', 't')} WHERE {self._keys('t')[0]} IS NULL"
        )
        changed_then = (table.then(untouched), table.then(had)) if table.before else ()
        return RootRows(table.now(now), (table.now(untouched), table.now(had)), changed_then)

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
