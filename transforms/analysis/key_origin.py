"""The way from keys of target rows back to source rows: the source columns that a target's key columns copy.

Read from the analysed plan, so that it holds for every row that the function could ever see. What isn't
simply handed through (a computed key, a cast that folds values) has no origin here: then all source rows must be
read.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from migrator.model.table import TableSchema
from transforms.analysis.expressions import Expression, Projection, projection
from transforms.analysis.plan import call
from transforms.analysis.row_wise import PlanWalk, surely_repeatable
from transforms.frames import marked_frame
from transforms.registry import TargetMapping

_PASSING = {
    "SubqueryAlias", "View", "Filter", "Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "ResolvedHint", "Generate",
}  # fmt: skip
_WHOLE_NUMBERS = {"ByteType", "ShortType", "IntegerType", "LongType"}
_MOMENTS = {"date": ("date",), "timestamp_ntz": ("datetime",), "timestamp": ("timestamp",)}
"""Spark's types, with those of MySQL and MariaDB that have the same values."""
_WHOLE = {"byte", "short", "integer", "long"}


def key_origin(
    spark: SparkSession, target: TargetMapping, schema: TableSchema, key: Sequence[str]
) -> tuple[str, ...] | None:
    """The source column that each of the target's key columns copies; None unless every key column copies one.

    Args:
        spark: a running session.
        target: a row-wise mapping of one source table.
        schema: that table.
        key: the target's key columns.
    """
    handed = handed_columns(spark, target, schema)
    found = tuple(
        origin
        for name in key
        if (origin := handed.columns.get(name) or _moment(handed.expressions.get(name), schema)) is not None
    )
    return found if len(found) == len(key) else None


def _moment(expression: Expression | None, schema: TableSchema) -> str | None:
    """The column of moments, captured as text, that an expression reads as moments.

    Other texts may be two for one moment; those that a server prints of its own type aren't.
    """
    found = set() if expression is None else _moments(expression, schema)
    return found.pop() if found is not None and len(found) == 1 else None


def _moments(expression: Expression, schema: TableSchema) -> set[str] | None:
    """The columns that an expression reads as moments, where it gives such a moment, NULL or an error; else None."""
    children = expression.children
    if expression.kind == "CaseWhen":  # conditions and their values by turns, at the end what all others give
        values = [*children[1::2], *(children[-1:] if len(children) % 2 else ())]
        found = [_moments(value, schema) for value in values]
        return None if None in found else {name for names in found for name in names or ()}
    if expression.kind == "Literal" and expression.value is None:
        return set()
    if expression.kind == "Cast" and children[0].kind == "RaiseError":
        return set()
    wanted = "date" if expression.kind == "ParseToDate" and len(children) == 1 else expression.type
    if expression.kind not in ("Cast", "ParseToDate") or children[0].column is None:
        return None
    column = schema.columns[children[0].column]
    declared = column.source_type.lower().split("(", maxsplit=1)[0]
    return {column.name} if column.type == "string" and declared in _MOMENTS.get(wanted, ()) else None


@dataclass(frozen=True, slots=True)
class HandedColumns:
    """The columns that a mapping of one source table hands through.

    Attributes:
        columns: maps output columns to the source columns that they copy.
        computed: output columns that copy no source column.
        row_wise: whether each target row comes from one source row.
        one_to_one: whether, beyond that, each source row makes exactly one target row.
        expressions: if so, the expressions of the output columns over the source's columns; else empty.
    """

    columns: Mapping[str, str]
    computed: tuple[str, ...]
    row_wise: bool
    one_to_one: bool
    expressions: Mapping[str, Expression]


def handed_columns(spark: SparkSession, target: TargetMapping, schema: TableSchema) -> HandedColumns:
    """Reads from the analysed plan which columns a mapping hands through; runs no job.

    ``schema`` is that of the one table that ``target`` reads.
    """
    marker = f"origin {uuid.uuid4()}"
    frame, leaf = marked_frame(spark, schema, marker)
    result = call(target, {target.sources[0]: frame})
    plan = result._jdf.queryExecution().analyzed()
    simple = _projection_of(plan, leaf)
    repeatable = simple is not None and surely_repeatable(plan, simple.text)
    walk = PlanWalk({leaf: target.sources[0]}, marker)
    if not repeatable:  # there is nothing else for it to refuse
        walk.visit(plan)
    if simple is not None:
        found, expressions = _of_projection(simple, schema), dict(simple.columns)
    else:
        origins = _origins(plan, leaf)
        places = [
            (name, origins.get(column)) for name, column in zip(result.columns, _ids(plan), strict=True)
        ]
        found, expressions = _by_name(places, schema), {}
    computed = tuple(name for name in result.columns if name not in found)
    row_wise = not walk.grains and not walk.unrepeatable
    return HandedColumns(found, computed, row_wise, simple is not None, expressions)


def key_of_each_row(result: DataFrame, leaf: int, schema: TableSchema) -> dict[str, str]:
    """Maps each output column to the source column that it is, where each source row makes exactly one row; else
    empty.

    Args:
        result: the frame that a mapping returned for one table's marked frame.
        leaf: the id of the marked frame's leaf.
        schema: the schema of that table.
    """
    simple = _projection_of(result._jdf.queryExecution().analyzed(), leaf)
    return {} if simple is None else _of_projection(simple, schema)


def _projection_of(plan: Any, leaf: int) -> Projection | None:
    """The plan as a projection of the marked leaf; None if the plan does more than that."""
    simple = projection(plan)
    return simple if simple is not None and plan.collectLeaves().head().rdd().id() == leaf else None


def _of_projection(simple: Projection, schema: TableSchema) -> dict[str, str]:
    return _by_name([(name, _place(expression)) for name, expression in simple.columns], schema)


def _by_name(places: Sequence[tuple[str, int | None]], schema: TableSchema) -> dict[str, str]:
    """Source columns by output column, without output columns whose names occur twice."""
    names = [name for name, _ in places]
    return {
        name: schema.names()[place] for name, place in places if place is not None and names.count(name) == 1
    }


def _place(expression: Expression) -> int | None:
    """The place in the source table of the column that an expression copies (see ``_handed``)."""
    if expression.kind == "Cast" and {expression.type, expression.children[0].type} <= _WHOLE:
        return _place(expression.children[0])
    return expression.column


def _origins(node: Any, leaf: int) -> dict[int, int]:
    """Maps each output column of a subtree to its place in the source table, if it has one.

    There is one walk for all columns, because each look at Spark's tree is a call into the JVM and takes a tenth of a
    millisecond.
    """
    kind = _kind(node)
    if kind == "LogicalRDD":
        return {column: place for place, column in enumerate(_ids(node))} if node.rdd().id() == leaf else {}
    children = list(_items(node.children()))
    if kind == "Union":
        sides = [[_origins(child, leaf).get(column) for column in _ids(child)] for child in children]
        agreed = zip(_ids(node), map(set, zip(*sides, strict=True)), strict=True)
        return {c: place for c, places in agreed if len(places) == 1 and (place := places.pop()) is not None}
    if kind == "Project":
        below = _origins(children[0], leaf)
        handed = {expression.exprId().id(): _handed(expression) for expression in _items(node.projectList())}
        return {column: below[origin] for column, origin in handed.items() if origin in below}
    return _origins(children[0], leaf) if kind in _PASSING else {}


def _ids(node: Any) -> list[int]:
    return [attribute.exprId().id() for attribute in _items(node.output())]


def _handed(expression: Any) -> int | None:
    """The column that an expression copies: renamed, or cast from one type of whole numbers to another, at most."""
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
