"""The plan for reading the rows that some target rows are made of, all in one short view: by grain.

A target row depends only on the rows that are linked to source rows of one grain value (row-wise: on one
source row). So the function over the rows linked to some grain values gives exactly the target rows of those.
Grain values are cut into ranges in the order of their own server, which no other server needs to share: the
target's rows are found by the keys that the function makes.

The links come from the mapping, as in the pipeline. So a grain that is declared too fine would look right on both
sides. But a key is read by grain only after a comparison of whole tables, which uses no grain, found it different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from migrator.model.reach import VALUE, Node, Reach, entangled
from migrator.model.table import Column, TableSchema
from transforms.analysis.plan import depends_on
from transforms.declared_grain import GrainProblem
from transforms.registry import TargetMapping
from verify.readers.chunk_keys import Dialect, Key, KeyColumn, KeyRange, condition, cut
from verify.readers.key_kinds import source_kind
from verify.readers.ports import SourceTables, TargetChunks
from verify.tables.compare.mapped_side import mapping_failure
from verify.tables.sweeps.table_sweep import NamedKinds, target_key

_NUMBERS = ("int8", "int16", "int32", "int64")


@dataclass(frozen=True, slots=True)
class Grain:
    """One grain.

    Attributes:
        reach: its table and what hangs on it.
        key: the columns of its table that make its value, with their kinds.
        nullable: whether one of them may be NULL.
    """

    reach: Reach
    key: NamedKinds
    nullable: bool

    def wheres(self, values: str, dialect: Dialect) -> list[tuple[str, str]]:
        """Per part that a table plays its name, and the condition of its rows linked to some grain values.

        ``values`` is the condition of the rows of the grain's own table.
        """
        found = [(self.reach.root.schema.id.name, values)]
        for node in self.reach.nodes[1:]:
            above = self.reach.nodes[node.above or 0].schema
            found.append((node.schema.id.name, linked(node, above, found[node.above or 0][1], dialect)))
        return found

    def pieces(self, tables: SourceTables, sizes: Mapping[str, int], most: int) -> Iterator[str | None]:
        """Conditions of the grain's own table: whole grains that have, with all that is linked, no more than
        a chunk.

        Together they are all its rows, but those of a grain that is larger by itself: None stands for each of
        these.

        Args:
            tables: the source's.
            sizes: their rows, roughly.
            most: rows in a chunk.
        """
        known = " AND ".join(f"{tables.dialect.quoted(name)} IS NOT NULL" for name, _ in self.key)
        yield from self._pieces(tables, KeyRange(), self._roots(sizes, most), most, known)
        if self.nullable:
            yield f"NOT ({known})" if self._fits(tables, f"NOT ({known})", most) else None

    def _roots(self, sizes: Mapping[str, int], most: int) -> int:
        """Rows of the grain's table in a piece that has about half a chunk; if nothing is linked, a whole one."""
        every = sum(sizes[node.schema.id.name] for node in self.reach.nodes)
        own = sizes[self.reach.root.schema.id.name]
        return most if len(self.reach.nodes) == 1 else max(1, most * own // max(1, 2 * every))

    def _pieces(
        self, tables: SourceTables, within: KeyRange, roots: int, most: int, known: str
    ) -> Iterator[str | None]:
        table = self.reach.root.schema.id.name
        names, kinds = [name for name, _ in self.key], [kind for _, kind in self.key]

        def said(piece: KeyRange) -> str:
            where = condition(piece, names, kinds, tables.dialect)
            return f"{where} AND {known}" if self.nullable else where

        def end(after: Key | None) -> Key | None:
            return tables.end(table, self.key, said(KeyRange(after, within.upto)), roots)

        for piece in cut(end, within):
            if self._fits(tables, said(piece), most):
                yield said(piece)
            elif roots > 1:
                yield from self._pieces(tables, piece, max(1, roots // 8), most, known)
            else:
                yield None

    def _fits(self, tables: SourceTables, values: str, most: int) -> bool:
        left = most
        for name, where in self.wheres(values, tables.dialect):
            left -= tables.count(name, left + 1, where)
            if left < 0:
                return False
        return True


@dataclass(frozen=True, slots=True)
class GrainPlan:
    """The plan by which a table is read by grain: its grains, and the target's key."""

    grains: tuple[Grain, ...]
    key: tuple[KeyColumn, ...]


def grain_plan(
    spark: SparkSession,
    target: TargetMapping,
    kinds: tuple[str, str],
    tables: SourceTables,
    rows: TargetChunks,
) -> GrainPlan | str:
    """The plan, or why there is none. Raises ``MappingError``, ``VerifyError``.

    Args:
        spark: a running session.
        target: the mapping.
        kinds: engines of source and target.
        tables: its source tables.
        rows: its target table.
    """
    key = target_key(rows, kinds[1], target.key)
    if isinstance(key, str):
        return key
    try:
        with mapping_failure(target):
            reaches = depends_on(spark, target, tables.schemas, tables.references())
    except GrainProblem as problem:
        return problem.what
    if entangled(reaches):
        return "rows of the grain's table also come in by another link"
    if any(reach.shared for reach in reaches):
        return "a grain's values are in several tables"
    found = []
    for reach in reaches:
        grain = _grain(reach, kinds[0], tables)
        if isinstance(grain, str):
            return grain
        found.append(grain)
    return GrainPlan(tuple(found), tuple(key))


def _grain(reach: Reach, engine: str, tables: SourceTables) -> Grain | str:
    root = reach.root.schema
    names = root.key if len(reach.nodes) == 1 and not reach.grain and not reach.name else reach.grain
    columns = {column.name: column for column in root.columns}
    if not names or any(name.startswith(VALUE) for name in names):
        return "the grain is computed"
    key = []
    for name in names:
        kind = source_kind(engine, columns[name])
        if kind is None:
            return f"{root.id.name} can't be cut by {name} ({columns[name].source_type})"
        key.append((name, kind))
    if not tables.has_index(root.id.name, names):
        return f"no index of {root.id.name} begins with {', '.join(names)}"
    for node in reach.nodes[1:]:
        reason = unlinked(node, reach.nodes[node.above or 0].schema, tables)
        if reason:
            return reason
    parts = [node.schema.id.name for node in reach.nodes]
    doubled = [name for name in parts if parts.count(name) > 1 and not tables.schemas[name].key]
    if doubled:
        return f"{doubled[0]} plays several parts and has no primary key"
    return Grain(reach, tuple(key), any(columns[name].nullable for name in names))


def linked(node: Node, above: TableSchema, where: str, dialect: Dialect) -> str:
    """The condition of a part's rows that are linked to those of the table above under a condition."""
    name = f"{dialect.quoted(above.id.schema)}.{dialect.quoted(above.id.name)}"
    own, others = (", ".join(map(dialect.quoted, columns)) for columns in (node.columns, node.above_columns))
    return f"({own}) IN (SELECT {others} FROM {name} WHERE {where})"


def unlinked(node: Node, above: TableSchema, tables: SourceTables) -> str:
    """Tells why rows of a part can't be found from those above; else empty."""
    name = node.schema.id.name
    if any(column.startswith(VALUE) for column in (*node.columns, *node.above_columns)):
        return f"{name} is linked by a computed value"
    own = {column.name: column for column in node.schema.columns}
    others = {column.name: column for column in above.columns}
    for here, there in zip(node.columns, node.above_columns, strict=True):
        if not _comparable(own[here], others[there]):
            return f"{name}.{here} and {above.id.name}.{there} are of types that the server may not compare"
    return "" if tables.has_index(name, node.columns) else f"no index of {name} begins with its link"


def _comparable(a: Column, b: Column) -> bool:
    numbers = [column.type in _NUMBERS or column.decimal() is not None for column in (a, b)]
    return all(numbers) or (a.source_type == b.source_type and a.collation == b.collation)
