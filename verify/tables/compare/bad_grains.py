"""Source rows without those of grains that the run set aside, because a joined mapping fails on them.

What is linked to such grains alone goes as well: a function may fail on it before it is joined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from migrator.errors import VerifyError
from migrator.model.progress import BadRow
from migrator.model.reach import Node, Reach, Reference, entangled, spoken
from migrator.model.table import TableSchema
from transforms.analysis.grain_values import value_columns
from transforms.analysis.plan import depends_on
from transforms.casts import parsed
from transforms.declared_grain import GrainProblem
from transforms.registry import TargetMapping
from verify.readers.ports import SourceTables

_NULL_TEXT = "\\N"
_BEYOND = re.compile(r"<value out of range: (-?\d+)>")
_EXACT = (T.IntegralType, T.DecimalType)


class Linked(Protocol):
    """The old database."""

    def tables(self, names: Sequence[str]) -> AbstractContextManager[SourceTables]:
        """Sessions for some tables."""
        ...


def without_grains(
    spark: SparkSession,
    target: TargetMapping,
    frames: Mapping[str, DataFrame],
    schemas: Mapping[str, TableSchema],
    bad_rows: Sequence[BadRow],
    source: Linked | None,
) -> dict[str, DataFrame]:
    """The source tables of a mapping without the rows of grains set aside.

    Args:
        spark: a running session.
        target: the mapping.
        frames: its source tables by name.
        schemas: their structure.
        bad_rows: set aside in its target; those that aren't grains change nothing.
        source: gives its foreign keys; None: there are none.

    Raises ``MappingError`` as the function does, ``VerifyError`` where the grains can't be told.
    """
    aside = [one for one in bad_rows if one.grain]
    if not aside:
        return dict(frames)
    try:
        reaches = depends_on(spark, target, schemas, _references(source, target.sources))
    except GrainProblem as problem:
        raise _unknown(target, problem.what) from None
    if entangled(reaches):
        raise _unknown(target, "rows of its grain's table come in by another link as well")
    wider = {name: with_values(target, name, rows) for name, rows in frames.items()}
    parts: dict[str, list[DataFrame]] = {name: [] for name in frames}
    for reach in reaches:
        for node, rows in zip(reach.nodes, _of_reach(reach, wider, aside), strict=True):
            parts[node.schema.id.name].append(rows.select(*map(_place, frames[node.schema.id.name].columns)))
    return {name: _united(found, schemas[name]) if found else frames[name] for name, found in parts.items()}


def with_values(target: TargetMapping, table: str, rows: DataFrame) -> DataFrame:
    """Adds the hashes of the values that a mapping computes of a table's rows, by which they are linked."""
    return rows.withColumns(
        {value.column: F.xxhash64(value.of(rows)) for value in value_columns(target, table)}
    )


def _references(source: Linked | None, names: Sequence[str]) -> Sequence[Reference]:
    if source is None:
        return ()
    with source.tables(names) as tables:
        return tables.references()


def _of_reach(reach: Reach, frames: Mapping[str, DataFrame], aside: Sequence[BadRow]) -> list[DataFrame]:
    """The rows of each node that belong to the grains that aren't aside."""
    found: list[DataFrame] = []
    label = tuple(f"{reach.root.schema.id.name}.{spoken(name)}" for name in reach.grain)
    keys = [one.key for one in aside if one.columns == label]
    for index, node in enumerate(reach.nodes):
        rows = frames[node.schema.id.name]
        if node.above is not None:
            found.append(_linked(rows, found[node.above], node))
        elif keys:
            bad = [_has(rows, reach.grain_of(index), key) for key in keys]
            found.append(rows.where(~reduce(lambda one, other: one | other, bad)))
        else:
            found.append(rows)
    return found


def _has(rows: DataFrame, columns: Sequence[str], key: Sequence[str]) -> Column:
    """Tells whether a row has this value of a grain, as the ledger writes it."""
    parts = []
    for name, text in zip(columns, key, strict=True):
        if text == _NULL_TEXT:
            parts.append(_place(name).isNull())
        else:
            parts.append(
                F.coalesce(_place(name) == _value(_read(text), rows.schema[name].dataType), F.lit(False))
            )
    return reduce(lambda one, other: one & other, parts)


def _value(text: str, kind: T.DataType) -> Column:
    """A value from its text in the ledger, which has infinite days and times as numbers."""
    if (beyond := _BEYOND.fullmatch(text)) and isinstance(kind, T.DateType):
        return F.date_from_unix_date(F.lit(int(beyond[1])))
    if beyond and isinstance(kind, (T.TimestampType, T.TimestampNTZType)):
        return F.timestamp_micros(F.lit(int(beyond[1])).cast("bigint")).cast(kind)
    return parsed(F.lit(text), kind)


def _read(text: str) -> str:
    """A text of the ledger as it was: a backslash is written twice, and a zero as one before a 0."""
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


def _linked(rows: DataFrame, above: DataFrame, node: Node) -> DataFrame:
    """The rows that are linked to one above; all of them where Spark would compare the two otherwise than the run."""
    ends = [F.col(f"__above_{place}") for place in range(len(node.columns))]
    kinds = [
        (rows.schema[name].dataType, above.schema[end].dataType)
        for name, end in zip(node.columns, node.above_columns, strict=True)
    ]
    exact = all(
        one == other or (isinstance(one, _EXACT) and isinstance(other, _EXACT)) for one, other in kinds
    )
    if not exact:
        return rows
    met = above.select(
        *(_place(name).alias(f"__above_{place}") for place, name in enumerate(node.above_columns))
    )
    same = [_place(name) == end for name, end in zip(node.columns, ends, strict=True)]
    return rows.join(met, reduce(lambda one, other: one & other, same), "left_semi")


def _united(parts: Sequence[DataFrame], schema: TableSchema) -> DataFrame:
    """Each row once, though a table may play several parts."""
    if len(parts) == 1:
        return parts[0]
    rows = reduce(DataFrame.unionByName, parts)
    return rows.dropDuplicates(list(schema.key)) if schema.key else rows.distinct()


def _place(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _unknown(target: TargetMapping, cause: str) -> VerifyError:
    return VerifyError(
        f"the grains of {target.name} that are set aside can't be left out",
        where=target.where(),
        cause=cause,
        remedy="correct the rows in the source and `migrator rows retry`, then verify again",
    )
