"""The mirror inside a batch's transaction: moved first, then asked what the batch touches (``ports.mirror``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from migrator.adapters.target_postgres.merge import columns, qualified, quoted
from migrator.adapters.target_postgres.mirror_sql import NUMBER, Mirrored, ReachSql
from migrator.adapters.target_postgres.mirror_tables import (
    FILLED,
    held,
    mirror_table,
    number_table,
    restored,
    sql_type,
)
from migrator.adapters.target_postgres.refusal import UNIQUE_VIOLATION, Refusal
from migrator.adapters.target_postgres.scratch import Scratch
from migrator.adapters.target_postgres.session import Session
from migrator.errors import TargetError
from migrator.model.reach import Reach, entangled
from migrator.model.table import TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, MirrorRows, Sides

_DIRECT = quoted("migrator_mirror_load")
_NUMBERS = (("number", "bigint"),)


class BatchMirror:
    """Implements ``ports.mirror.Mirror`` over the session's open transaction.

    Args:
        session: with the batch's transaction open.
        scratch: its temporary tables.
        migration: whose mirror it is.
        kept: per source table the columns that its mirror has.
        segment: last segment of the batch.
    """

    def __init__(
        self,
        session: Session,
        scratch: Scratch,
        migration: str,
        kept: Mapping[TableId, tuple[str, ...]],
        segment: int,
    ):
        self._session = session
        self._scratch = scratch
        self._migration = migration
        self._kept = kept
        self._segment = segment
        self._moved: dict[TableId, Mirrored] = {}
        self._dumped: set[str] = set()
        self._followed: dict[Reach, _Followed] = {}

    # -- moving

    def move(self, rows: Sequence[MirrorRows], followed: Collection[TableId]) -> None:
        """Applies a batch's rows. ``followed``: tables of targets in step, of which changes are kept to be traced."""
        for one in rows:
            self._move(one, one.schema.id in followed)

    def _move(self, rows: MirrorRows, follow: bool) -> None:
        table = self._mirrored(rows.schema)
        changes = [part for part in (rows.before, rows.after) if part is not None and part.num_rows]
        if rows.chunks and not changes and not follow and self._load_directly(table, rows.chunks):
            return
        table = replace(
            table,
            staged=self._scratch.table(f"staged {rows.schema.id}", (("chunk", "boolean"), *_typed(table))),
            gone=self._scratch.table(f"gone {rows.schema.id}", _typed(table, table.key)),
            before=self._scratch.table(f"before {rows.schema.id}", _typed(table)),
        )
        for path in rows.chunks:
            for batch in _row_groups(path):
                self._stage(table, batch, chunk=True)
        if rows.after is not None and rows.after.num_rows:
            self._stage(table, rows.after, chunk=False)
        if rows.before is not None and rows.before.num_rows:
            keys = held(rows.before.select(table.key), table.schema, table.key)
            distinct = keys.group_by(list(table.key)).aggregate([])
            self._load(table.gone, distinct.rename_columns(table.places(table.key)), table)
        if rows.chunks and changes:
            self._session.run(table.net_chunk())
        if follow:
            self._session.run(table.keep_before())
            self._moved[rows.schema.id] = table
            if rows.chunks:
                self._dumped.add(rows.schema.id.name)
        if rows.before is not None and rows.before.num_rows:
            self._session.run(table.delete())
        self._session.run(table.upsert())

    def _load_directly(self, table: Mirrored, paths: Sequence[str]) -> bool:
        """Whether dump rows went straight into the mirror; False when some are there already."""
        self._session.run(f"SAVEPOINT {_DIRECT}")
        place = mirror_table(self._migration, table.schema.id)
        try:
            for path in paths:
                for batch in _row_groups(path):
                    self._session.load(place, held(batch, table.schema, table.columns))
        except Refusal as refusal:
            self._session.run(f"ROLLBACK TO SAVEPOINT {_DIRECT}")
            if refusal.sqlstate == UNIQUE_VIOLATION:
                return False
            raise _not_held(table, refusal) from None
        return True

    def _stage(self, table: Mirrored, rows: pa.Table, chunk: bool) -> None:
        staged = held(rows, table.schema, table.columns).rename_columns(table.places(table.columns))
        flags = pa.array([chunk] * rows.num_rows, pa.bool_())
        self._load(table.staged, staged.add_column(0, "chunk", flags), table)

    def _load(self, name: str, rows: pa.Table, table: Mirrored) -> None:
        try:
            self._session.load(name, rows)
        except Refusal as refusal:
            raise _not_held(table, refusal) from None

    # -- what is in step

    def filled(self) -> frozenset[tuple[str, str]]:
        """Name and digest of the joined targets that are in step with the mirror."""
        rows = self._session.rows(
            f"SELECT target, digest FROM {FILLED} WHERE migration = $1::text", [self._migration]
        )
        return frozenset((str(name), str(digest)) for name, digest in rows)

    def mark_filled(self, target: JoinedTarget) -> None:
        """From this transaction on the target is in step."""
        self._session.run(
            f"INSERT INTO {FILLED} VALUES ($1::text, $2::text, $3::text, $4::bigint) ON CONFLICT (migration, target)"
            " DO UPDATE SET digest = excluded.digest, segment = excluded.segment",
            [self._migration, target.table.id.name, target.digest(), self._segment],
        )

    def is_empty(self, table: TargetTable) -> bool:
        """Whether the target table has no row."""
        return not self._session.rows(f"SELECT 1 FROM {qualified(table.id)} LIMIT 1")

    def whole(self, schema: TableSchema) -> Iterator[pa.Table]:
        """All rows of a mirrored table, in parts."""
        table = self._mirrored(schema)
        statement = f"SELECT {', '.join(table.named(table.columns, 'm'))} FROM {table.table} m"
        for part in self._session.parts(statement):
            yield restored(part, schema, table.columns)

    def stay(self) -> None:
        """Keeps the transaction alive while somebody computes."""
        self._session.rows("SELECT 1")

    # -- what a batch touches

    def trace(self, target: JoinedTarget) -> int:
        """Finds the grains that the batch touches; returns how many."""
        number = 0
        for reach in target.reaches:
            found = self._follow(reach)
            if found.grains is None:
                if reach.grain:
                    self._run(found.sql.trace())
                    found.wanted = f"SELECT DISTINCT number FROM {found.up[0]}"
                found.grains = self._scratch.table(f"grains {reach}", _NUMBERS)
                self._session.run(f"INSERT INTO {found.grains} {found.wanted}")
            number += self._count(found)
        return number

    def slices(self, target: JoinedTarget, grains: int) -> Iterator[Sides]:
        """The rows of the grains found by ``trace``, at most so many grains at a time.

        Of the grain's table a slice holds the rows of its own grains, on each side: a row that moves to a grain of
        another slice is on one side only. All at once where rows of the grain's table also come in by another link:
        such rows stand for grains of which a slice holds a part only, different ones on each side perhaps.
        """
        followed = [self._follow(reach) for reach in target.reaches]
        counts = [self._count(found) for found in followed]
        if sum(counts) <= grains or entangled(target.reaches):
            if sum(counts):
                for found in followed:
                    self._collect(found, "")
                yield self._sides(target, followed)
            return
        for found, count in zip(followed, counts, strict=True):
            after = ""
            for _ in range(0, count, grains):
                last = self._collect(found, f"{after} ORDER BY number LIMIT {grains}")
                after = f" WHERE number > {last}"
                yield self._sides(target, [found], found)

    def _count(self, found: _Followed) -> int:
        return int(self._session.one(f"SELECT count(*) FROM {found.grains}")[0])

    def _collect(self, found: _Followed, which: str) -> int | None:
        """Collects the rows of some grains; returns the highest of their numbers."""
        for name in (found.part, *found.down) if found.collected else ():
            self._scratch.empty(name)
        found.collected = True
        self._session.run(f"INSERT INTO {found.part} SELECT number FROM {found.grains}{which}")
        self._run(found.sql.collect())
        last: int | None = self._session.one(f"SELECT max(number) FROM {found.part}")[0]
        return last

    def _sides(
        self, target: JoinedTarget, followed: Sequence[_Followed], slice_of: _Followed | None = None
    ) -> Sides:
        before: dict[str, pa.Table] = {}
        after: dict[str, pa.Table] = {}
        for name, schema in target.sources.items():
            if slice_of is not None and schema.id == slice_of.sql.root:
                before[name], after[name] = self._of_grains(self._mirrored(schema), slice_of)
                continue
            queries = [query for found in followed for query in found.sql.keys_of(name)]
            if queries:
                before[name], after[name] = self._both(self._mirrored(schema), " UNION ".join(queries))
        return Sides(before, after, bool(self._dumped & set(target.sources)))

    def _both(self, table: Mirrored, keys: str) -> tuple[pa.Table, pa.Table]:
        changed, after = self._now(table, keys)
        if not table.staged:
            return after, after
        then = restored(self._session.table(table.then(keys)), table.schema, table.columns)
        return pa.concat_tables([after.filter(pc.invert(changed)), then]), after

    def _of_grains(self, table: Mirrored, found: _Followed) -> tuple[pa.Table, pa.Table]:
        now, then, changed_then = found.sql.root_keys()
        _, after = self._now(table, now)
        changed, before = self._now(table, then)
        before = before.filter(pc.invert(changed))
        if not table.before:
            return before, after
        old = self._session.table(table.then(changed_then))
        return pa.concat_tables([before, restored(old, table.schema, table.columns)]), after

    def _now(self, table: Mirrored, keys: str) -> tuple[pa.ChunkedArray, pa.Table]:
        """Rows as they are now, and which of them the batch changed."""
        rows = self._session.table(table.now(keys))
        return rows.column(0), restored(rows.select(range(1, rows.num_columns)), table.schema, table.columns)

    # -- computed grains

    def roots(self, reach: Reach, tables: Sequence[str]) -> dict[str, pa.Table] | None:
        """Touched rows of a computed grain's table, and the rows of ``tables`` linked to them, as they are now."""
        found = self._follow(reach)
        self._run((*found.sql.trace(), *found.sql.touched_numbers()))
        found.wanted = "SELECT 0::bigint WHERE false"
        if not self._session.rows(f"SELECT 1 FROM {found.up[0]} LIMIT 1"):
            return None
        keys = f"SELECT DISTINCT * FROM {found.up[0]}"
        _, own = self._now(self._mirrored(reach.root.schema), keys)
        linked = {
            node.schema.id.name: self._linked(reach, index, keys)
            for index, node in enumerate(reach.nodes)
            if index and node.role in tables
        }
        return {**linked, reach.root.schema.id.name: own}

    def _linked(self, reach: Reach, index: int, keys: str) -> pa.Table:
        """Rows of a node found from the touched roots, link by link."""
        above = self._mirrored(reach.root.schema)
        rows = f"SELECT m.* FROM ({keys}) k {above.lookup(above.columns, above.key, above.places(above.key, 'k'))}"
        for step in list(reversed(reach.path(index)))[1:]:
            node = reach.nodes[step]
            table = self._mirrored(node.schema)
            lookup = table.lookup(table.columns, node.columns, above.places(node.above_columns, "k"))
            rows = f"SELECT DISTINCT m.* FROM ({rows}) k {lookup}"
            above = table
        return restored(self._session.table(rows), above.schema, above.columns)

    def renumber(self, reach: Reach, numbers: pa.Table) -> None:
        """Stores the values of a computed grain for the rows of ``roots``."""
        found = self._follow(reach)
        table = self._mirrored(reach.root.schema)
        name = number_table(self._migration, reach)
        own = ", ".join(table.places(table.key))
        touched = f"SELECT DISTINCT {own} FROM {found.up[0]}"
        self._session.run(f"DELETE FROM {qualified(name)} WHERE ({columns(table.key)}) IN ({touched})")
        self._session.load(name, _keyed(table, numbers))
        pairs = zip(table.named(table.key, "n"), table.places(table.key, "k"), strict=True)
        found.wanted = (
            f"SELECT number FROM {found.numbers_before} UNION SELECT n.{NUMBER} FROM ({touched}) k"
            f" JOIN {qualified(name)} n ON {' AND '.join(f'{a} = {b}' for a, b in pairs)}"
        )

    def number_all(self, reach: Reach, numbers: Iterator[pa.Table]) -> None:
        """Stores the values of a computed grain for all rows of its table."""
        name = number_table(self._migration, reach)
        self._session.run(f"DELETE FROM {qualified(name)}")
        for part in numbers:
            self._session.load(name, _keyed(self._mirrored(reach.root.schema), part))

    def revalue(self, schema: TableSchema, columns: Sequence[str], rows: Iterator[pa.Table]) -> None:
        """Stores computed values of all rows of a table; rows that have them already aren't written."""
        table = self._mirrored(schema)
        names = (*table.key, *columns)
        load = self._scratch.table(f"values {schema.id} {' '.join(columns)}", _typed(table, names))
        for part in rows:
            values = held(part, table.schema, names).rename_columns(table.places(names))
            self._session.load(load, values)
        self._session.run(table.revalue(load, columns))

    # -- tables

    def _run(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self._session.run(statement)

    def _mirrored(self, schema: TableSchema) -> Mirrored:
        """A mirrored table, with the batch's temporary tables if the batch changes it."""
        moved = self._moved.get(schema.id)
        if moved is not None:
            return moved
        table = qualified(mirror_table(self._migration, schema.id))
        return Mirrored(schema, self._kept[schema.id], table)

    def _follow(self, reach: Reach) -> _Followed:
        found = self._followed.get(reach)
        if found is None:
            found = self._followed[reach] = self._begin(reach)
        return found

    def _begin(self, reach: Reach) -> _Followed:
        tables = {name: self._mirrored(schema) for name, schema in reach.tables().items()}
        root = tables[reach.root.schema.id.name]
        up, down = [], []
        for index, node in enumerate(reach.nodes):
            table = tables[node.schema.id.name]
            traced = _NUMBERS if index == 0 and reach.grain else _typed(table, reach.up_columns(index))
            up.append(self._scratch.table(f"up {index} {reach}", traced))
            down.append(
                self._scratch.table(f"down {index} {reach}", _typed(table, reach.down_columns(index)))
            )
        part = self._scratch.table(f"part {reach}", _NUMBERS)
        if reach.grain:
            return _Followed(ReachSql(reach, tables, up, down, part), up, down, part)
        before = self._scratch.table(f"before {reach}", (*_typed(root, root.key), *_NUMBERS))
        numbers = qualified(number_table(self._migration, reach))
        return _Followed(ReachSql(reach, tables, up, down, part, numbers, before), up, down, part, before)


@dataclass(slots=True)
class _Followed:
    """One reach in this batch: its statements and temporary tables.

    ``wanted`` is the query of the touched grains, ``grains`` the table that it was stored in.
    """

    sql: ReachSql
    up: list[str]
    down: list[str]
    part: str
    numbers_before: str = ""
    wanted: str = ""
    grains: str | None = None
    collected: bool = False


def _typed(table: Mirrored, names: Sequence[str] | None = None) -> tuple[tuple[str, str], ...]:
    """Columns of a temporary table: by place, with their types."""
    types = {column.name: sql_type(column) for column in table.schema.columns}
    wanted = table.columns if names is None else names
    return tuple(zip(table.places(wanted), (types[name] for name in wanted), strict=True))


def _keyed(table: Mirrored, numbers: pa.Table) -> pa.Table:
    return held(numbers, table.schema, table.key).append_column("~number", numbers["~number"])


def _row_groups(path: str) -> Iterator[pa.Table]:
    file = pq.ParquetFile(path)
    for number in range(file.num_row_groups):
        yield file.read_row_group(number)


def _not_held(table: Mirrored, refusal: Refusal) -> TargetError:
    return TargetError(
        f"rows of {table.schema.id} can't be kept in the mirror",
        where=f"{table.table}{f', column {refusal.column}' if refusal.column else ''}",
        cause=refusal.cause(),
        remedy="a text with the character U+0000 is such a case: correct the row in the source, then start again",
    )
