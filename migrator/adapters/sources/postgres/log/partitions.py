"""Partitions whose rows came or went without a trace in the log, found by looks at the catalog.

A table that is attached brings its rows along; one that is detached or dropped takes them away; a TRUNCATE of a
partition alone isn't sent where changes are published by root. The first two are told by which partitions
there are, and by the versions (``xmin``) of their rows in ``pg_inherits``. The last is told by the
partition's file: TRUNCATE gives it another (``pg_class.relfilenode``), unless it is rolled back. So do
others, which leave the rows as they are. One that has another file than at the last look was not emptied
unseen if

- the newest version of its row in ``pg_class`` is of a transaction whose TRUNCATE of the whole table is in the log:
  what had gone unseen before it is of no interest any more; or
- it still has a row that was there at the last look, by the transaction that wrote it: VACUUM FULL and CLUSTER keep
  that.

Anything else can't be told apart from a TRUNCATE and stops the run, once the log has been read past the look: the
catalog may show a TRUNCATE of the whole table before the log brings it. The looks are told to the next reader.

Tables that came or went are answered as another table under the name is (see ``identity``): all rows are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from migrator.adapters.sources.postgres.reflection import Query
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import ReplacedError, SchemaError
from migrator.model.position import Position
from migrator.model.table import TableId

# A system column's row in pg_attribute is written when a table is made and never again. Not by pg_partition_tree:
# that waits for the locks of others on partitions.
_PARTITIONS = """
WITH RECURSIVE tree (schema, name, oid, is_root) AS (
  SELECT captured.schema, captured.name, c.oid, true FROM unnest($2::text[], $3::text[]) AS captured (schema, name)
  JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name AND c.relkind = 'p'
  UNION ALL
  SELECT t.schema, t.name, i.inhrelid, false FROM tree t
  JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid AND NOT i.inhdetachpending
)
SELECT t.schema, t.name, t.is_root, t.oid::int8, t.oid::pg_catalog.regclass::text,
       i.xmin::text || '/' || i.inhparent::text,
       i.xmin::text <> a.xmin::text,
       coalesce(pg_catalog.age(i.xmin) <= pg_catalog.age(s.catalog_xmin), false),
       CASE WHEN f.relkind = 'r' THEN f.relfilenode ELSE 0 END::int8, f.xmin::text::int8,
       pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::int8
FROM tree t
JOIN pg_catalog.pg_class f ON f.oid = t.oid
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = -1
LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = t.oid AND NOT t.is_root
LEFT JOIN pg_catalog.pg_replication_slots s ON s.slot_name = $1
"""
# Whoever may read the table may not read its partitions by their own names. A bounded piece of each: the old
# rows of a rewritten file are as a rule its first ones.
_SURVIVORS = """
SELECT DISTINCT tableoid::int8 FROM {table}
WHERE tableoid = ANY($1::int8[]::oid[]) AND ctid < '(64,0)'::pg_catalog.tid
  AND pg_catalog.age(xmin) > pg_catalog.age($2::text::pg_catalog.xid)
"""
_WAITS = "SELECT pg_catalog.current_setting('lock_timeout')"
_WAIT = "SELECT pg_catalog.set_config('lock_timeout', $1, false)"
_BRIEFLY = "200ms"
_XIDS = 1 << 32
_FIRST_XID = 3
_UNSEEN = (
    "while it runs, make partitions only with CREATE TABLE ... PARTITION OF, and attach, detach and drop none"
)


@dataclass(frozen=True, slots=True)
class Partition:
    """``file``: its relfilenode, 0 for one that has none; ``version``: of its membership."""

    name: str
    version: str
    file: int


@dataclass(frozen=True, slots=True)
class Tree:
    """A table's partitions as a look saw them.

    Attributes:
        bound: every transaction below it had ended by then (64-bit xid).
        emptied: the last transactions that emptied the whole table, as the log had them (32-bit xids). Two are
            enough: such a one holds its lock until everybody sees it, so only the newest may not be seen yet.
    """

    partitions: Mapping[int, Partition]
    bound: int
    emptied: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the text for the notes; a file that is a partition's first isn't told."""
        rows: list[list[Any]] = []
        for oid, partition in sorted(self.partitions.items()):
            rows.append(
                [oid, partition.name, partition.version, *([partition.file] if partition.file != oid else [])]
            )
        return {"bound": self.bound, "emptied": list(self.emptied), "tree": rows}

    @classmethod
    def from_json(cls, noted: Mapping[str, Any]) -> Tree:
        """Inverse of ``to_json``."""
        rows = {
            oid: Partition(name, version, *(rest or [oid])) for oid, name, version, *rest in noted["tree"]
        }
        return cls(rows, noted["bound"], tuple(noted["emptied"]))


@dataclass(slots=True)
class _Seen:
    """The findings of one look at a table. ``adopted``: tables before they were partitions; ``recent``: partitions
    since the slot's place; ``writers``: whose transaction wrote a partition's row in ``pg_class``."""

    tree: Tree
    adopted: set[int] = field(default_factory=set)
    recent: set[int] = field(default_factory=set)
    writers: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Doubt:
    """Partitions (by who wrote their row) that only a TRUNCATE of the whole table can explain, up to ``place``."""

    tree: Tree
    writers: dict[int, int]
    place: Position | None = None


def found_partitions(query: Query, slot: str, tables: Sequence[TableId]) -> dict[TableId, _Seen]:
    """The partitioned ones among these tables, as they are now."""
    found: dict[TableId, _Seen] = {}
    partitions: dict[TableId, dict[int, Partition]] = {}
    captured = [slot, [table_id.schema for table_id in tables], [table_id.name for table_id in tables]]
    for schema, root, is_root, oid, name, version, adopted, recent, file, writer, bound in query(
        _PARTITIONS, captured
    ):
        table = TableId(schema, root)
        inside = partitions.setdefault(table, {})
        seen = found.setdefault(table, _Seen(Tree(inside, bound)))
        if is_root:
            continue
        inside[oid] = Partition(name, version, file)
        seen.writers[oid] = writer
        if adopted:
            seen.adopted.add(oid)
        if recent:
            seen.recent.add(oid)
    return found


class PartitionWatch:
    """Compares looks. Told of what the log brings in between, it tells a partition's own TRUNCATE."""

    def __init__(self) -> None:
        self._doubts: dict[TableId, _Doubt] = {}

    def first(self, table: TableId, seen: _Seen, *, resumed: bool) -> Tree:
        """A look with nothing to compare to. Raises ReplacedError, named.

        ``resumed``: the log is read on from the slot's place.
        """
        if resumed and (found := came_or_went(table, None, seen)) is not None:
            raise found
        return seen.tree

    def next(self, query: Query, table: TableId, known: Tree, seen: _Seen | None) -> Tree:
        """Returns what is known after this look. Raises ReplacedError, named, for what came or went."""
        if (found := came_or_went(table, known, seen)) is not None:
            raise found
        if (
            seen is None or table in self._doubts
        ):  # which is decided first: a later look might never come to an end
            return known
        after = replace(seen.tree, emptied=known.emptied)
        try:
            writers = _unexplained(query, table, known, seen)
        except (
            psycopg.errors.LockNotAvailable
        ):  # somebody works on a partition: the next look compares with the same
            return known
        if not writers:
            return after
        self._doubts[table] = _Doubt(after, writers)
        return known

    def emptied(self, table: TableId, known: Tree, xid: int) -> Tree:
        """The log has a TRUNCATE of the whole table by this transaction. What is known then."""
        emptied = (*(earlier for earlier in known.emptied if earlier != xid), xid)[-2:]
        doubt = self._doubts.get(table)
        if doubt is not None:
            doubt.writers = {oid: writer for oid, writer in doubt.writers.items() if writer != xid}
            if not doubt.writers:
                del self._doubts[table]
                known = doubt.tree
        return replace(known, emptied=emptied)

    def undecided(self) -> bool:
        """Tells whether something waits for the log."""
        return bool(self._doubts)

    def decide_at(self, place: Position) -> None:
        """A place at or behind everything that looks have seen so far."""
        for doubt in self._doubts.values():
            doubt.place = doubt.place or place

    def reached(self, position: Position) -> None:
        """The log has been read so far. Raises SchemaError, named, for what it should have explained."""
        for table, doubt in self._doubts.items():
            if doubt.place is not None and position >= doubt.place:
                names = sorted(doubt.tree.partitions[oid].name for oid in doubt.writers)
                raise _emptied(table, names)


def came_or_went(table: TableId, known: Tree | None, seen: _Seen | None) -> ReplacedError | None:
    """The named error for a table that was attached or detached since the last look (``known``); None if none was.

    Without a last look: since the slot's place.
    """
    now = seen.tree.partitions if seen is not None else {}
    adopted = seen.adopted if seen is not None else set()
    if known is None:
        recent = sorted(adopted & seen.recent) if seen is not None else []
        return _attached(table, now[recent[0]]) if recent else None
    for oid, partition in now.items():
        new = oid not in known.partitions or known.partitions[oid].version != partition.version
        if new and oid in adopted:
            return _attached(table, partition)
    gone = (partition for oid, partition in known.partitions.items() if oid not in now)
    return next((_detached(table, partition) for partition in gone), None)


def _unexplained(query: Query, table: TableId, known: Tree, seen: _Seen) -> dict[int, int]:
    """Partitions that may have been emptied since what is known, and who wrote their row."""
    changed = [
        oid
        for oid, partition in seen.tree.partitions.items()
        if partition.file
        != (known.partitions[oid].file if oid in known.partitions else oid if partition.file else 0)
        and seen.writers[oid] not in known.emptied
    ]
    old = [oid for oid in changed if oid in known.partitions]
    if old and seen.tree.bound - known.bound < _XIDS // 2:
        kept = _with_old_rows(query, table, old, max(known.bound % _XIDS, _FIRST_XID))
        changed = [oid for oid in changed if oid not in kept]
    return {oid: seen.writers[oid] for oid in changed}


def _with_old_rows(query: Query, table: TableId, oids: list[int], bound: int) -> set[int]:
    """Tells which of these partitions surely have a row of before; the log must not wait for locks of others."""
    ((before,),) = query(_WAITS, [])
    query(_WAIT, [_BRIEFLY])
    try:
        return {oid for (oid,) in query(_SURVIVORS.format(table=quoted(table)), [oids, str(bound)])}
    finally:
        query(_WAIT, [before])


def _attached(table: TableId, partition: Partition) -> ReplacedError:
    return ReplacedError(
        f"the partitions of {table} changed, which the log doesn't show",
        [table],
        cause=f"{partition.name} was attached, with whatever rows it had",
        remedy=f"have its rows read (--where bounds which), then start again: {_asking(table)}; {_UNSEEN}",
    )


def _detached(table: TableId, partition: Partition) -> ReplacedError:
    return ReplacedError(
        f"the partitions of {table} changed, which the log doesn't show",
        [table],
        cause=f"{partition.name} was detached or dropped, and its rows with it",
        remedy=f"{_repaired(table)}; {_UNSEEN}",
    )


def _emptied(table: TableId, names: Iterable[str]) -> SchemaError:
    return SchemaError(
        f"a partition of {table} was emptied or rewritten, which the log doesn't show",
        where=str(table),
        cause=f"{', '.join(names)}: another file than before, by a TRUNCATE of the partition alone, or by VACUUM"
        " FULL, CLUSTER or the like, and no row from before was found in it that would tell these from that",
        remedy=f"{_repaired(table)}; while it runs, DELETE a partition's rows instead",
    )


def _repaired(table: TableId) -> str:
    return (
        f"have the rows read again (--where bounds which), then start again: {_asking(table)}; rows that are gone"
        " stay in the target until `migrator verify` finds them and `migrator repair` removes them"
    )


def _asking(table: TableId) -> str:
    return f"migrator dump start --table {table.name}"
