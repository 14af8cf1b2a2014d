"""A second look at keys that a sweep left open, where no server can find the rows of their grain.

A sweep reads rows of one grain at different moments. While users write to them, the mapping may make a row of them
that never existed, in every sweep again. So right after a sweep:

1. Its rows are put into buckets by grain (``verify.tables.sweeps.grain_buckets``), and the mapping runs over them.
   A bucket *owns* an open key if it makes the same row of it as all rows together
   (``verify.tables.sweeps.bucket_owners``).
2. The rows of the buckets that own a key are read again, as many as fit, in one view: those of the grain's table by
   their own keys, and those that were inserted since, if keys grow; the others by their links where an index finds
   them, else by their own keys too.
3. Once the ledger has passed that view, the target's rows are read by key.

A key that is equal then is settled as equal. Any other key stays open: the look doesn't see a row that has come to a
grain since the sweep in another way, so it never proves a difference. Rows that were lost before the sweep are
noticed as in any sweep.

Some mappings need rows of other grains too, of which a bucket has only a part. Such a bucket may make a row that
only looks right. Then several buckets own its key, the true one among them, and are read together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from migrator.model.reach import Reach
from transforms.analysis.plan import depends_on
from transforms.declared_grain import GrainProblem
from transforms.registry import TargetMapping
from verify.readers.chunk_keys import KeyColumn, KeyRange, condition, is_written, lists_of
from verify.readers.ports import Bracket, Part, SourceTables, TargetChunks
from verify.readers.snapshot import SourceTable, TargetRowsText
from verify.tables.compare.compare import (
    MAPPED_HASH,
    MAPPED_ROWS,
    Shape,
    compare,
    having,
    key_names,
    unique_hashes,
)
from verify.tables.compare.mapped_side import (
    canonical_mapped,
    file_frames,
    mapping_failure,
    stored_sides,
)
from verify.tables.sweeps.bucket_owners import owners
from verify.tables.sweeps.grain_buckets import Bucket, GrainBuckets
from verify.tables.sweeps.grain_plan import linked, unlinked
from verify.tables.sweeps.open_keys import OpenKeys, TableSides
from verify.tables.sweeps.pairing import Pairing, Views, Wait
from verify.tables.sweeps.table_sweep import NamedKinds, source_key, target_key
from verify.tables.sweeps.target_keys import CellTexts, TargetKeys

_OF_A_CHUNK = 4
"""Buckets for each chunk of rows. One view reads as many of them as have no more rows than a chunk together."""
_KEYS_IN_A_LIST = 1000
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class BucketPlan:
    """The plan by which a table's grains are put into buckets, and their rows are found again.

    Attributes:
        reaches: the tables on whose rows its rows depend.
        counts: the number of buckets of each reach.
        by_key: per reach, the places of those parts whose rows are found by their own keys.
        source_keys: the primary keys of source tables.
        key: the target's key.
    """

    reaches: tuple[Reach, ...]
    counts: tuple[int, ...]
    by_key: tuple[frozenset[int], ...]
    source_keys: Mapping[str, NamedKinds]
    key: tuple[KeyColumn, ...]


def bucket_plan(
    spark: SparkSession,
    target: TargetMapping,
    kinds: tuple[str, str],
    tables: SourceTables,
    rows: TargetChunks,
    sizes: Mapping[str, int],
    chunk_rows: int,
) -> BucketPlan | str:
    """The plan, or why there is none. Raises ``MappingError``, ``VerifyError``.

    Args:
        spark: a running session.
        target: the mapping.
        kinds: engines of source and target.
        tables: its source tables.
        rows: its target table.
        sizes: rows of the source tables, at least roughly.
        chunk_rows: rows in a chunk.
    """
    found = {name: source_key(tables, kinds[0], name) for name in target.sources}
    key = target_key(rows, kinds[1], target.key)
    for key_or_reason in (*found.values(), key):
        if isinstance(key_or_reason, str):
            return key_or_reason
    assert not isinstance(key, str)
    try:
        with mapping_failure(target):
            reaches = depends_on(spark, target, tables.schemas, tables.references())
    except GrainProblem as problem:
        return problem.what
    linked_rows = [sum(sizes[node.schema.id.name] for node in reach.nodes) for reach in reaches]
    counts = [1 + rows * _OF_A_CHUNK // chunk_rows for rows in linked_rows]
    by_key = tuple(
        frozenset(
            place
            for place, node in enumerate(reach.nodes)
            if node.above is None or unlinked(node, reach.nodes[node.above].schema, tables)
        )
        for reach in reaches
    )
    known = {name: columns for name, columns in found.items() if not isinstance(columns, str)}
    return BucketPlan(reaches, tuple(counts), by_key, known, tuple(key))


@dataclass(frozen=True, slots=True)
class _Group:
    """Keys that are looked at together, and the buckets that own them."""

    buckets: frozenset[Bucket]
    keys: frozenset[CellTexts]


@dataclass(frozen=True, slots=True)
class _Half:
    group: _Group
    bracket: Bracket
    files: Mapping[str, Sequence[Path]]


@dataclass(slots=True)
class BucketsSeen(Views):
    """The findings of a look at buckets.

    Attributes:
        equal: keys that are equal on both sides.
        owners: the buckets that own a key; None if a key that the sweep's rows make has none.
    """

    equal: frozenset[CellTexts] = frozenset()
    owners: frozenset[Bucket] | None = frozenset()


class BucketLook(Pairing):
    """Looks at the open keys of one table.

    Args:
        spark: a running session.
        open_keys: the keys.
        plan: how the table's grains are put into buckets.
        sides: the two sides of the table.
        wait, step: see ``verify.tables.sweeps.pairing.Pairing``.
        directory: made anew, for files.
    """

    def __init__(
        self,
        spark: SparkSession,
        open_keys: OpenKeys,
        plan: BucketPlan,
        sides: TableSides,
        wait: Wait,
        step: Callable[[str], None],
        directory: Path,
    ):
        self._seen = BucketsSeen()
        super().__init__(sides.rows.ledger, wait, step, self._seen)
        directory.mkdir()
        self._spark, self._mapping, self._plan = spark, open_keys.mapping, plan
        self._tables, self._rows = sides.tables, sides.rows
        self._open, self._columns = open_keys.keys, open_keys.columns
        self._shape = Shape(tuple(column.name for column in self._columns), self._mapping.key)
        self._directory, self._mapped = directory, directory / "mapped.parts"
        self._by_key = TargetKeys(sides.rows, plan.key, self._view, directory / "target.parts")
        self._files = 0

    def look(
        self, swept: Mapping[str, SourceTable], only: frozenset[Bucket] | None, most: int
    ) -> BucketsSeen:
        """Looks at the keys that buckets own.

        Args:
            swept: the rows that the sweep read.
            only: buckets that may own a key; None for all.
            most: rows that are read in one view, at most; the keys of larger grains stay open.
        """
        plan, folder = self._plan, self._directory / "buckets.parts"
        with mapping_failure(self._mapping):
            buckets = GrainBuckets(self._spark, self._mapping, plan.reaches, swept, plan.counts, folder, only)
        groups = together(self._owners(buckets))
        sizes = {bucket: buckets.rows(bucket) for group in groups for bucket in group.buckets}
        shared = packed(groups, sizes, most)
        self._view(self._rows.ledger())
        self._mapped.mkdir()
        self._pass((self._read(buckets, group, most) for group in shared), self._settle, _AHEAD)
        if shared and self._seen.waited.reached:
            self._seen.equal = self._equal(frozenset(key for group in shared for key in group.keys))
        return self._seen

    def _owners(self, buckets: GrainBuckets) -> dict[CellTexts, list[Bucket]]:
        """Finds, by key, the buckets that make the same row as all rows make together."""
        names = key_names(self._shape)
        columns = (
            self._open.where(f"{MAPPED_ROWS} = 1").select(*names, f"{MAPPED_HASH}.*").toArrow().to_pydict()
        )
        *keys, first, second = columns.values()
        expected = dict(zip(zip(*keys, strict=True), zip(first, second, strict=True), strict=True))

        def makes(some: Sequence[Bucket]) -> set[CellTexts]:
            rows = canonical_mapped(self._mapping, buckets.frames(some), self._columns)
            with mapping_failure(self._mapping):
                found = unique_hashes(having(rows, self._open, self._shape), self._shape)
            return {key for key, hashes in found.items() if expected.get(key) == hashes}

        owned: dict[CellTexts, list[Bucket]] = {}
        for _, alike in groupby(buckets.all(), lambda bucket: bucket.reach):
            for key, by in owners(list(alike), expected, makes).items():
                owned.setdefault(key, []).extend(by)
        lost = set(expected) - set(owned)
        self._seen.owners = None if lost else frozenset(bucket for by in owned.values() for bucket in by)
        return owned

    def _read(self, buckets: GrainBuckets, group: _Group, most: int) -> _Half:
        """The rows of some buckets as they are now, in one view."""
        self._files += 1
        folder = self._directory / f"group-{self._files}.parts"
        folder.mkdir()
        parts: list[Part] = []
        for reach in range(len(self._plan.reaches)):
            own = [bucket for bucket in sorted(group.buckets) if bucket.reach == reach]
            for name, wheres in self._conditions(buckets, reach, own, most) if own else ():
                parts += [
                    Part(name, where, folder / f"{len(parts) + number}.parquet")
                    for number, where in enumerate(wheres)
                ]
        bracket, _ = self._tables.read(parts)
        files: dict[str, list[Path]] = {}
        for part in parts:
            files.setdefault(part.table, []).append(part.path)
        return _Half(group, bracket, files)

    def _conditions(
        self, buckets: GrainBuckets, number: int, own: Sequence[Bucket], most: int
    ) -> list[tuple[str, list[str]]]:
        """Per part of a reach its table, and the conditions that find its rows."""
        reach, by_key = self._plan.reaches[number], self._plan.by_key[number]
        dialect = self._tables.dialect
        found: list[tuple[str, list[str]]] = []
        for place, node in enumerate(reach.nodes):
            name = node.schema.id.name
            if place in by_key:
                key = self._plan.source_keys[name]
                names, kinds = [column for column, _ in key], [kind for _, kind in key]
                known = [row for bucket in own for row in buckets.keys(bucket, place, key)]
                keys = [row for row in dict.fromkeys(known) if is_written(row, kinds, dialect)]
                wheres = [
                    condition(piece, names, kinds, dialect) for piece in lists_of(keys, _KEYS_IN_A_LIST)
                ]
                wheres += self._new_rows(buckets, name, most) if node.above is None else []
            else:
                above = node.above or 0
                wheres = [
                    linked(node, reach.nodes[above].schema, where, dialect) for where in found[above][1]
                ]
            found.append((name, wheres))
        return found

    def _new_rows(self, buckets: GrainBuckets, table: str, most: int) -> list[str]:
        """The condition of a table's rows beyond those that were swept, if its keys grow and they aren't many."""
        key = self._plan.source_keys[table]
        last = buckets.last(table, key)
        if last is None:
            return []
        names, kinds = [name for name, _ in key], [kind for _, kind in key]
        where = condition(KeyRange(last), names, kinds, self._tables.dialect)
        return [where] if self._tables.end(table, key, where, most) is None else []

    def _settle(self, half: _Half) -> bool:
        """Stores the mapped rows of the group's keys, and the target's rows of these keys."""
        self._files += 1
        frames = file_frames(self._spark, self._mapping, self._tables.schemas, half.files)
        mapped = canonical_mapped(self._mapping, frames, self._columns)
        with mapping_failure(self._mapping):
            rows = having(mapped, self._open, self._shape).toArrow()
        keys = zip(*(rows[name].to_pylist() for name in self._shape.key), strict=True)
        own = pa.array([key in half.group.keys for key in keys], pa.bool_())
        pq.write_table(rows.filter(own), self._mapped / f"{self._files}.parquet")
        self._by_key.read(sorted(half.group.keys, key=str))
        return True

    def _equal(self, looked: frozenset[CellTexts]) -> frozenset[CellTexts]:
        """Returns those of the keys looked at that are equal, or on neither side."""
        shape, names = self._shape, key_names(self._shape)
        rows = TargetRowsText(
            self._mapping.name, self._rows.columns, self._directory / "target.parts", self._by_key.found
        )
        sides = stored_sides(self._spark, self._mapped, rows, self._columns, shape)
        compared = compare(sides.mapped, sides.target, shape, self._directory)
        if compared.differing is None:
            return looked
        differing = compared.differing.select(*names).toArrow()
        return looked - set(zip(*(column.to_pylist() for column in differing.columns), strict=True))


def together(owned: Mapping[CellTexts, Sequence[Bucket]]) -> list[_Group]:
    """Groups of keys and buckets: each key with all its buckets, each bucket in one group."""
    alike: dict[frozenset[Bucket], list[CellTexts]] = {}
    for key, by in owned.items():
        alike.setdefault(frozenset(by), []).append(key)
    groups: list[tuple[frozenset[Bucket], list[CellTexts]]] = []
    for joined, keys in alike.items():
        apart = []
        for group in groups:
            if group[0] & joined:
                joined, keys = joined | group[0], [*group[1], *keys]
            else:
                apart.append(group)
        groups = [*apart, (joined, keys)]
    return [_Group(buckets, frozenset(keys)) for buckets, keys in groups]


def packed(groups: Sequence[_Group], sizes: Mapping[Bucket, int], most: int) -> list[_Group]:
    """Packs groups into one as long as they have at most ``most`` rows together; drops those that have more by
    themselves.

    A row that moves from one grain to another leaves the keys of both open. In one view it is in one of them only.
    """
    found: list[tuple[int, _Group]] = []
    for group in groups:
        size = sum(sizes[bucket] for bucket in group.buckets)
        if size > most:
            continue
        if found and found[-1][0] + size <= most:
            before, last = found.pop()
            found.append((before + size, _Group(last.buckets | group.buckets, last.keys | group.keys)))
        else:
            found.append((size, group))
    return [group for _, group in found]
