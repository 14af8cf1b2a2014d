"""The mirror inside a batch's transaction: moved first, then asked what the batch touches (``ports.mirror``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.shared.mirror.coverage import NUMBERS, Coverage
from migrator.adapters.targets.shared.mirror.followed import deciding
from migrator.adapters.targets.shared.mirror.mirrored import Mirrored
from migrator.adapters.targets.shared.mirror.reach_sql import ReachSql
from migrator.adapters.targets.shared.mirror.store import MirrorStore
from migrator.columnar.compared import compared
from migrator.columnar.segment_rows import row_groups
from migrator.model.progress import BadRow
from migrator.model.reach import Reach, entangled
from migrator.model.table import TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import Covered, JoinedTarget, MirrorRows, Sides

_COMPARED_ROWS = 50_000
"""Changes of a table in one batch that are held beside the rows as they were, at most; more than these all count."""
_PIECE_ROWS = 500_000
"""Rows that the grains of one piece of a fill depend on, at most, unless one grain has more."""


class BatchMirror:
    """Implements ``ports.mirror.Mirror`` over the open transaction of a ``MirrorStore``."""

    aside: Sequence[BadRow] = ()

    def __init__(self, store: MirrorStore):
        self._store = store
        self._moved: dict[TableId, Mirrored] = {}
        self._changed: dict[TableId, frozenset[str] | None] = {}
        self._dumped: set[str] = set()
        self._followed: dict[Reach, _Followed] = {}
        self._coverage = Coverage(store)

    # -- moving

    def move(self, rows: Sequence[MirrorRows], followed: Mapping[TableId, Collection[str]]) -> None:
        """Applies a batch's rows.

        ``followed``: tables of targets in step, with the columns that decide on these. Changes of those columns, rows
        that come and rows that go are kept to be traced; of the others only the mirror's own row is changed.
        """
        for one in rows:
            columns = followed.get(one.schema.id)
            loud = one if columns is None else self._without_quiet(one, columns)
            if loud is not None:
                self._move(loud, columns is not None)

    def _without_quiet(self, rows: MirrorRows, columns: Collection[str]) -> MirrorRows | None:
        """Applies the rows that stay the same in the columns that decide; returns the others, None if there are
        none.

        The mirror tells what a row was: a before image of the log may hold the key alone.
        """
        self._changed[rows.schema.id] = None
        if rows.chunks or rows.emptied or rows.after is None or not 0 < rows.after.num_rows <= _COMPARED_ROWS:
            return rows
        store, table = self._store, self._mirrored(rows.schema)
        keys = table.places(table.key)
        staged = store.scratch(f"compared {rows.schema.id}", (("chunk", "boolean"), *table.typed()), keys)
        store.load(staged, table, rows.after, table.columns, chunk=False)
        found = compared(rows.after, rows.before, self._as_they_were(table, staged), table.key, columns)
        self._changed[rows.schema.id] = found.columns
        if not found.after.num_rows and not (found.before is not None and found.before.num_rows):
            store.run(replace(table, staged=staged).upsert())
            return None
        if found.quiet.num_rows:
            staged = store.scratch(f"staged {rows.schema.id}", (("chunk", "boolean"), *table.typed()), keys)
            store.load(staged, table, found.quiet, table.columns, chunk=False)
            store.run(replace(table, staged=staged).upsert())
        return replace(rows, before=found.before, after=found.after)

    def _as_they_were(self, table: Mirrored, staged: str) -> pa.Table:
        """The mirror's rows of the keys of staged rows."""
        lookup = table.lookup(table.columns, table.key, table.places(table.key, "k"))
        return self._store.selected(f"SELECT {_every(table)} FROM {staged} k {lookup}", table)

    def _move(self, rows: MirrorRows, follow: bool) -> None:
        store, table = self._store, self._mirrored(rows.schema)
        kept = (
            store.scratch(f"before {rows.schema.id}", table.typed(), table.places(table.key))
            if follow
            else ""
        )
        if rows.emptied:
            if (
                follow
            ):  # what the batch brings is traced like any change, what was there as rows that it takes away
                store.run(replace(table, before=kept).keep_whole())
            store.run(f"DELETE FROM {table.table}")
        changes = [part for part in (rows.before, rows.after) if part is not None and part.num_rows]
        if (
            rows.chunks
            and not changes
            and not follow
            and store.load_directly(table, row_groups(*rows.chunks))
        ):
            return
        keys = table.places(table.key)
        table = replace(
            table,
            staged=store.scratch(f"staged {rows.schema.id}", (("chunk", "boolean"), *table.typed()), keys),
            gone=store.scratch(f"gone {rows.schema.id}", table.typed(table.key), keys),
            before=kept,
        )
        for part in row_groups(*rows.chunks):
            store.load(table.staged, table, part, table.columns, chunk=True)
        if rows.after is not None and rows.after.num_rows:
            store.load(table.staged, table, rows.after, table.columns, chunk=False)
        if rows.before is not None and rows.before.num_rows:
            distinct = rows.before.select(table.key).group_by(list(table.key)).aggregate([])
            store.load(table.gone, table, distinct, table.key)
        if rows.chunks and changes:
            self._run(table.net_chunk())
        if follow:
            store.run(table.keep_before())
            self._moved[rows.schema.id] = table
            if rows.chunks:
                self._dumped.add(rows.schema.id.name)
        if rows.before is not None and rows.before.num_rows:
            store.run(table.delete())
        store.run(table.upsert())

    # -- what is in step

    def filled(self) -> frozenset[tuple[str, str]]:
        """Name and digest of the joined targets that are in step with the mirror."""
        return self._store.filled()

    def mark_filled(self, target: JoinedTarget) -> None:
        """Notes that the target is in step with the mirror from this transaction on."""
        self._coverage.whole(target)

    def covering(self) -> Mapping[tuple[str, str], Covered]:
        """The joined targets that are being filled piece by piece."""
        return self._coverage.all()

    def begin_pieces(self, target: JoinedTarget) -> None:
        """Notes that nothing of the target is covered."""
        self._coverage.begin(target)

    def more_rows(self, target: JoinedTarget, than: int) -> bool:
        """Tells whether the tables of the target's grains have more rows than these."""
        return self._coverage.more_rows(target, than)

    def piece(self, target: JoinedTarget, rows: int) -> Sides:
        """The rows of the next grains, which are covered from this transaction on."""
        covered = self._coverage.all()[target.table.id.name, target.digest()]
        found = self._follow(target.reaches[covered.reach])
        while True:
            self._take(found, found.sql.next_numbers(covered.number, rows))
            taken, linked = self._count(found.part), sum(map(self._count, found.down))
            if linked <= _PIECE_ROWS or taken <= 1:
                break
            rows = max(1, taken * _PIECE_ROWS // (2 * linked))
        last = self._highest(found)
        highest = last if taken and self._store.rows(found.sql.next_numbers(last, 1)) else None
        after = self._sides(target, [found], found).after
        roots = (n for n, schema in target.sources.items() if found.sql.root_of(schema.id) is not None)
        self._coverage.note(target, covered.advanced(highest, sum(after[n].num_rows for n in roots)))
        return Sides({name: rows.slice(0, 0) for name, rows in after.items()}, after, False)

    def is_empty(self, table: TargetTable) -> bool:
        """Tells whether the target table has no row."""
        return self._store.is_empty(table)

    def whole(self, schema: TableSchema) -> Iterator[pa.Table]:
        """All rows of a mirrored table, in parts."""
        yield from self._store.whole(self._mirrored(schema))

    def stay(self) -> None:
        """Keeps the transaction alive while somebody computes."""
        self._store.rows("SELECT 1")

    # -- what a batch touches

    def touches(self, target: JoinedTarget) -> bool:
        """Tells whether the batch changes anything on which the target depends."""
        for schema in target.sources.values():
            if schema.id in self._moved:
                columns = self._changed[schema.id]
                if columns is None or columns & deciding(schema, [target]):
                    return True
        return False

    def trace(self, target: JoinedTarget) -> int:
        """Finds the grains that the batch touches, among those that are covered; returns how many."""
        number = 0
        for place, reach in enumerate(target.reaches):
            found = self._follow(reach)
            if found.grains is None:
                if reach.grain:
                    self._run(found.sql.trace())
                    found.wanted = found.sql.wanted()
                found.grains = self._store.scratch(f"grains {reach}", NUMBERS)
                self._store.run(f"INSERT INTO {found.grains} {found.wanted}")
            number += self._coverage.number(self._coverage.touched(target, place, found.grains))
        return number

    def slices(self, target: JoinedTarget, grains: int) -> Iterator[Sides]:
        """The rows of the grains found by ``trace``, at most so many grains at a time.

        Of the grain's tables a slice holds the rows of its own grains, on each side: a row that moves to a grain of
        another slice is on one side only. All at once where rows of the grain's table also come in by another link:
        such rows stand for grains of which a slice holds a part only, different ones on each side perhaps. Of a
        target that is covered by half always: a row may have moved to a grain that isn't covered.
        """
        followed = [self._follow(reach) for reach in target.reaches]
        touched = [self._coverage.touched(target, n, one.grains or "") for n, one in enumerate(followed)]
        counts = list(map(self._coverage.number, touched))
        if self._coverage.of(target) is None and (sum(counts) <= grains or entangled(target.reaches)):
            if sum(counts):
                for found, name in zip(followed, touched, strict=True):
                    self._take(found, f"SELECT number FROM {name}")
                yield self._sides(target, followed)
            return
        for found, name, count in zip(followed, touched, counts, strict=True):
            after = ""
            for _ in range(0, count, grains):
                self._take(found, f"SELECT number FROM {name}{after} ORDER BY number LIMIT {grains:d}")
                after = f" WHERE number > {self._highest(found)}"
                yield self._sides(target, [found], found)

    def _count(self, name: str) -> int:
        return _number(self._store.rows(f"SELECT count(*) FROM {name}"))

    def _highest(self, found: _Followed) -> int:
        return _number(self._store.rows(f"SELECT coalesce(max(number), 0) FROM {found.part}"))

    def _take(self, found: _Followed, numbers: str) -> None:
        """Collects the rows of the grains whose numbers a query gives."""
        for name in (found.part, *found.down) if found.collected else ():
            self._store.empty(name)
        found.collected = True
        self._store.run(f"INSERT INTO {found.part} {numbers}")
        self._run(found.sql.collect())

    def _sides(
        self, target: JoinedTarget, followed: Sequence[_Followed], slice_of: _Followed | None = None
    ) -> Sides:
        before: dict[str, pa.Table] = {}
        after: dict[str, pa.Table] = {}
        for name, schema in target.sources.items():
            root = None if slice_of is None else slice_of.sql.root_of(schema.id)
            if slice_of is not None and root is not None:
                before[name], after[name] = self._of_grains(self._mirrored(schema), slice_of, root)
                continue
            queries = [query for found in followed for query in found.sql.keys_of(name)]
            if queries:
                before[name], after[name] = self._both(self._mirrored(schema), " UNION ".join(queries))
        return Sides(before, after, bool(self._dumped & set(target.sources)))

    def _both(self, table: Mirrored, keys: str) -> tuple[pa.Table, pa.Table]:
        changed, after = self._now(table, keys)
        if not table.staged:
            return after, after
        then = self._store.selected(table.then(keys), table)
        return pa.concat_tables([after.filter(pc.invert(changed)), then]), after

    def _of_grains(self, table: Mirrored, found: _Followed, root: int) -> tuple[pa.Table, pa.Table]:
        queries = found.sql.root_rows(root)
        asked = {
            query: self._store.flagged(query, table) for query in dict.fromkeys((queries.now, *queries.then))
        }
        then = [asked[query] for query in queries.then]
        before = [rows.filter(pc.invert(changed)) for changed, rows in then]
        before += [self._store.selected(query, table) for query in queries.changed]
        return pa.concat_tables(before), asked[queries.now][1]

    def _now(self, table: Mirrored, keys: str) -> tuple[pa.ChunkedArray, pa.Table]:
        """Rows as they are now, and which of them the batch changed."""
        return self._store.flagged(table.now(keys), table)

    # -- computed grains

    def roots(self, reach: Reach, tables: Sequence[str]) -> dict[str, pa.Table] | None:
        """Touched rows of a computed grain's table, and the rows of ``tables`` linked to them, as they are now."""
        found = self._follow(reach)
        self._run((*found.sql.trace(), found.sql.touched_numbers()))
        found.wanted = found.sql.nothing()
        if not self._store.rows(f"SELECT 1 FROM {found.up[0]} LIMIT 1"):
            return None
        keys = found.sql.touched_keys()
        _, own = self._now(self._mirrored(reach.root.schema), keys)
        linked = {
            node.schema.id.name: self._linked(reach, index, keys)
            for index, node in enumerate(reach.nodes)
            if index and node.role in tables
        }
        return {**linked, reach.root.schema.id.name: own}

    def _linked(self, reach: Reach, index: int, keys: str) -> pa.Table:
        """Rows of a node found from the touched roots, link by link."""
        table = self._mirrored(reach.root.schema)
        lookup = table.lookup(table.columns, table.key, table.places(table.key, "k"))
        rows = f"SELECT {_every(table)} FROM ({keys}) k {lookup}"
        for step in list(reversed(reach.path(index)))[1:]:
            node, above = reach.nodes[step], table
            table = self._mirrored(node.schema)
            lookup = table.lookup(table.columns, node.columns, above.places(node.above_columns, "k"))
            rows = f"SELECT DISTINCT {_every(table)} FROM ({rows}) k {lookup}"
        return self._store.selected(rows, table)

    def renumber(self, reach: Reach, numbers: pa.Table) -> None:
        """Stores the values of a computed grain for the rows of ``roots``."""
        found = self._follow(reach)
        table = self._mirrored(reach.root.schema)
        self._store.run(table.delete_numbers(self._store.number_table(reach), found.sql.touched_keys()))
        self._store.load_numbers(reach, table, numbers)
        found.wanted = found.sql.wanted()

    def number_all(self, reach: Reach, numbers: Iterator[pa.Table]) -> None:
        """Stores the values of a computed grain for all rows of its table."""
        self._store.run(f"DELETE FROM {self._store.number_table(reach)}")
        for part in numbers:
            self._store.load_numbers(reach, self._mirrored(reach.root.schema), part)

    def revalue(self, schema: TableSchema, columns: Sequence[str], rows: Iterator[pa.Table]) -> None:
        """Stores computed values of all rows of a table; rows that have them already aren't written."""
        table = self._mirrored(schema)
        names = (*table.key, *columns)
        owner = f"values {schema.id} {' '.join(columns)}"
        load = self._store.scratch(owner, table.typed(names), table.places(table.key))
        for part in rows:
            self._store.load(load, table, part, names)
        self._store.run(table.revalue(load, columns))

    # -- tables

    def _run(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._store.run(statement)

    def _mirrored(self, schema: TableSchema) -> Mirrored:
        """A mirrored table, with the batch's temporary tables if the batch changes it."""
        return self._moved.get(schema.id) or self._store.mirrored(schema)

    def _follow(self, reach: Reach) -> _Followed:
        found = self._followed.get(reach)
        if found is None:
            found = self._followed[reach] = self._begin(reach)
        return found

    def _begin(self, reach: Reach) -> _Followed:
        scratch = self._store.scratch
        tables = {name: self._mirrored(schema) for name, schema in reach.tables().items()}
        root = tables[reach.root.schema.id.name]
        up: list[str] = []
        down: list[str] = []
        for index, node in enumerate(reach.nodes):
            table = tables[node.schema.id.name]
            if index and node.above is None:
                up.append(up[0])
            else:
                traced = NUMBERS if index == 0 and reach.grain else table.typed(reach.up_columns(index))
                by = table.places(table.key) if index == 0 and not reach.grain else ()
                up.append(scratch(f"up {index} {reach}", traced, by))
            down.append(scratch(f"down {index} {reach}", table.typed(reach.down_columns(index))))
        part = scratch(f"part {reach}", NUMBERS)
        if reach.grain:
            return _Followed(ReachSql(reach, tables, up, down, part), up, down, part)
        before = scratch(f"before {reach}", (*root.typed(root.key), *NUMBERS))
        numbers = self._store.number_table(reach)
        return _Followed(ReachSql(reach, tables, up, down, part, numbers, before), up, down, part)


@dataclass(slots=True)
class _Followed:
    """One reach in this batch: its statements and temporary tables.

    ``wanted`` is the query of the touched grains, ``grains`` the table that it was stored in.
    """

    sql: ReachSql
    up: list[str]
    down: list[str]
    part: str
    wanted: str = ""
    grains: str | None = None
    collected: bool = False


def _every(table: Mirrored) -> str:
    return ", ".join(table.places(table.columns, "m"))


def _number(rows: list[tuple[object, ...]]) -> int:
    return int(str(rows[0][0]))
