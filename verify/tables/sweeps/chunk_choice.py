"""The decision whether a table can be verified piece by piece: the plan for it, or the reason against it.

It can where each target row is made of one source row and carries that row's whole primary key, of a kind that both
servers order alike, and the target has an index on it. The decision is read from the analysed plan of the mapping and
from both catalogues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from migrator.model.table import Column, TableSchema
from transforms.analysis.expressions import Expression
from transforms.analysis.key_origin import HandedColumns, handed_columns
from transforms.registry import TargetMapping
from verify.readers.chunk_keys import KeyColumn
from verify.readers.key_kinds import agreed_kind
from verify.readers.ports import SourceChunks, TargetChunks
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare.mapped_side import mapping_failure
from verify.tables.hashed_by_servers.digest import Pair, Pushed, pushed
from verify.tables.hashed_by_servers.engines import HASHING
from verify.tables.hashed_by_servers.sql_value import SqlValue


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """The plan by which a table is verified piece by piece.

    Attributes:
        source: the one source table.
        key: the key's columns in the order of the source's primary key.
        filled: target columns that the mapping fills, in the target's order.
        pushed: how both servers compute digests; None where rows have to be read.
    """

    source: str
    key: tuple[KeyColumn, ...]
    filled: tuple[TargetColumnText, ...]
    pushed: Pushed | None


def why_whole(target: TargetMapping) -> str:
    """Returns why the declaration of a mapping rules out to verify it piece by piece; empty if it doesn't."""
    if target.grain is not None:
        return "the mapping joins or aggregates"
    return "the mapping reads several source tables" if len(target.sources) > 1 else ""


def choose(
    spark: SparkSession,
    target: TargetMapping,
    kinds: tuple[str, str],
    source: SourceChunks,
    target_rows: Callable[[], TargetChunks],
) -> ChunkPlan | str:
    """The plan, or why there is none. Raises ``MappingError``, ``VerifyError``.

    ``target_rows`` may still be opening: it is called once the mapping's plan is read.
    """
    with mapping_failure(target):
        handed = handed_columns(spark, target, source.schema)
    if not handed.row_wise:
        return "not each target row comes of one source row"
    rows = target_rows()
    columns = {column.name: column for column in rows.columns}
    old = {column.name: column for column in source.schema.columns}
    found = _by_target_column(handed, columns)
    handed_on = {name: old[origin] for name, origin in found.items()}
    lacking = [name for name in target.key if name not in handed_on]
    if lacking:
        return f"key column {lacking[0]} is not a source column handed through"
    origins = {handed_on[name].name: name for name in target.key}
    if len(origins) < len(target.key) or set(origins) != set(source.schema.key):
        return "the key is not the source's whole primary key"
    key = []
    for name in source.schema.key:
        column = columns[origins[name]]
        kind = agreed_kind(kinds, old[name], column)
        if kind is None:
            return f"the order of key column {column.name} ({column.native}) is not agreed upon"
        key.append(KeyColumn(name, column.name, kind))
    if not rows.has_key([column.target for column in key]):
        return "the target has no unique index of just the key that could find its rows"
    filled = _filled(handed, rows.columns)
    digest = None
    pairs = {name: Pair(column, columns[name]) for name, column in handed_on.items()}
    if handed.one_to_one:
        pairs |= _in_sql(kinds, handed, rows.columns, source.schema)
    if handed.one_to_one and len(pairs) == len(handed.columns) + len(handed.computed):
        digest = pushed(kinds, (source.dialect, rows.dialect), [pairs[column.name] for column in filled], key)
    return ChunkPlan(source.schema.id.name, tuple(key), filled, digest)


def _in_sql(
    kinds: tuple[str, str], handed: HandedColumns, columns: Sequence[TargetColumnText], schema: TableSchema
) -> dict[str, Pair]:
    """The computed columns that the source's server can compute, by target column."""
    found = {}
    for column in columns:
        names = [name for name in handed.computed if name == column.name] or [
            name for name in handed.computed if name.lower() == column.name.lower()
        ]
        expression = handed.expressions.get(names[0]) if names else None
        value = _in_words(kinds, expression, schema.columns) if expression is not None else None
        if value is not None and not column.generated:
            found[column.name] = Pair(value, column)
    return found


def _in_words(kinds: tuple[str, str], expression: Expression, columns: Sequence[Column]) -> SqlValue | None:
    if not set(kinds) <= set(HASHING):
        return None
    old, new = (HASHING[kind] for kind in kinds)
    return old.words(expression, columns, new.strict_times)


def _by_target_column(handed: HandedColumns, columns: dict[str, TargetColumnText]) -> dict[str, str]:
    """Source columns by target column; names as ``verify.tables.compare.mapped_side`` finds them."""
    folded = {name.lower(): name for name in columns}
    found = {}
    for name, origin in handed.columns.items():
        own = name if name in columns else folded.get(name.lower())
        if own is not None and not columns[own].generated:
            found[own] = origin
    return found


def _filled(handed: HandedColumns, columns: tuple[TargetColumnText, ...]) -> tuple[TargetColumnText, ...]:
    names = {*handed.columns, *handed.computed}
    lower = {name.lower() for name in names}
    return tuple(column for column in columns if column.name in names or column.name.lower() in lower)
