"""From keys of target rows back to source rows: which source columns a target's key columns are, unchanged.

Read from the analysed plan, so that it holds for every row that the function could ever see. What isn't simply handed
through (a computed key, a cast that folds values) has no origin here: then only all source rows will do.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from migrator.model.table import TableSchema
from transforms.frames import marked_frame
from transforms.plan import call
from transforms.registry import TargetMapping
from transforms.row_wise import PlanWalk

_PASSING = {
    "SubqueryAlias", "View", "Filter", "Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "ResolvedHint", "Generate",
}  # fmt: skip
_KEEPING = _PASSING - {"Filter", "Generate"} | {"Project"}
_WHOLE_NUMBERS = {"ByteType", "ShortType", "IntegerType", "LongType"}


def key_origin(
    spark: SparkSession, target: TargetMapping, schema: TableSchema, key: Sequence[str]
) -> tuple[str, ...] | None:
    """The source column that each of the target's key columns is; None unless that is so for all of them.

    Args:
        spark: a running session.
        target: a row-wise mapping of one source table.
        schema: that table.
        key: the target's key columns.
    """
    handed = handed_columns(spark, target, schema).columns
    found = tuple(handed[name] for name in key if name in handed)
    return found if len(found) == len(key) else None


@dataclass(frozen=True, slots=True)
class HandedColumns:
    """What a mapping of one source table hands through.

    Attributes:
        columns: by output column the source column that it is.
        computed: output columns that are no source column.
        row_wise: whether each target row comes of one source row.
        one_to_one: whether, beyond that, each source row makes exactly one target row.
    """

    columns: Mapping[str, str]
    computed: tuple[str, ...]
    row_wise: bool
    one_to_one: bool


def handed_columns(spark: SparkSession, target: TargetMapping, schema: TableSchema) -> HandedColumns:
    """Reads it from the analysed plan; runs no job. ``target`` takes the table of ``schema`` only."""
    marker = f"origin {uuid.uuid4()}"
    frame, leaf = marked_frame(spark, schema, marker)
    result = call(target, {target.sources[0]: frame})
    plan = result._jdf.queryExecution().analyzed()
    walk = PlanWalk({leaf: target.sources[0]}, marker)
    walk.visit(plan)
    found = {}
    for name, attribute in zip(result.columns, _items(plan.output()), strict=True):
        place = _origin(plan, attribute.exprId().id(), leaf)
        if place is not None and result.columns.count(name) == 1:
            found[name] = schema.names()[place]
    computed = tuple(name for name in result.columns if name not in found)
    return HandedColumns(found, computed, not walk.grains and not walk.unrepeatable, _one_to_one(plan, leaf))


def _one_to_one(node: Any, leaf: int) -> bool:
    if _kind(node) == "LogicalRDD":
        return bool(node.rdd().id() == leaf)
    children = list(_items(node.children()))
    return _kind(node) in _KEEPING and len(children) == 1 and _one_to_one(children[0], leaf)


def _origin(node: Any, column: int, leaf: int) -> int | None:
    """The place in the source table of an output column of a subtree."""
    kind = _kind(node)
    if kind == "LogicalRDD":
        ids = [attribute.exprId().id() for attribute in _items(node.output())]
        return ids.index(column) if node.rdd().id() == leaf and column in ids else None
    children = list(_items(node.children()))
    if kind == "Project":
        for expression in _items(node.projectList()):
            if expression.exprId().id() == column:
                below = _handed(expression)
                return None if below is None else _origin(children[0], below, leaf)
        return None
    if kind == "Union":
        ids = [attribute.exprId().id() for attribute in _items(node.output())]
        place = ids.index(column)
        found = {
            _origin(child, list(_items(child.output()))[place].exprId().id(), leaf) for child in children
        }
        return found.pop() if len(found) == 1 else None
    if kind in _PASSING and any(each.exprId().id() == column for each in _items(children[0].output())):
        return _origin(children[0], column, leaf)
    return None


def _handed(expression: Any) -> int | None:
    """The column that an expression is, renamed or cast from one whole number to another at most."""
    kind = _kind(expression)
    if kind == "AttributeReference":
        return int(expression.exprId().id())
    if kind == "Alias":
        return _handed(expression.child())
    if kind == "Cast":  # under ANSI it fails rather than fold two values into one
        types = {_kind(expression.dataType()), _kind(expression.child().dataType())}
        return _handed(expression.child()) if {t.rstrip("$") for t in types} <= _WHOLE_NUMBERS else None
    return None


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(n) for n in range(sequence.size())]
