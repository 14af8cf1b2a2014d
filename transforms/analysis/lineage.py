"""Target columns that copy source columns. Needed to carry generators of values (sequences) from one to the other."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from transforms.analysis.plan import MappingPlan, call
from transforms.frames import marked_frame

_PASSING = frozenset({"Cast", "Alias"})


def unchanged(spark: SparkSession, plan: MappingPlan) -> dict[str, frozenset[tuple[str, str]]]:
    """The source columns, as (table, column), that each target column is a copy of, in all or some of its rows.

    A copy may be renamed, cast, and passed through joins, unions, filters and groupings. A computed value is no
    copy. The analysed plan tells; runs no job.
    """
    leaves: dict[int, str] = {}
    frames = {}
    for name, schema in plan.schemas.items():
        frames[name], leaf = marked_frame(spark, schema, f"lineage of {name} {uuid.uuid4()}")
        leaves[leaf] = name
    result = call(plan.target, frames)
    analysed = result._jdf.queryExecution().analyzed()
    origins: dict[int, set[tuple[str, str]]] = {}
    copies: dict[int, set[int]] = {}
    for node in _nodes(analysed):
        kind = node.getClass().getSimpleName()
        if kind == "LogicalRDD" and node.rdd().id() in leaves:
            schema = plan.schemas[leaves[node.rdd().id()]]
            for column, attribute in zip(schema.names(), _items(node.output()), strict=True):
                origins.setdefault(_id(attribute), set()).add((schema.id.name, column))
        elif kind in ("Project", "Aggregate"):
            projected = node.projectList() if kind == "Project" else node.aggregateExpressions()
            for expression in _items(projected):
                below = _copied(expression)
                if below is not None:
                    copies.setdefault(_id(expression), set()).add(below)
        elif kind == "Union":
            for child in _items(node.children()):
                for here, there in zip(_items(node.output()), _items(child.output()), strict=True):
                    copies.setdefault(_id(here), set()).add(_id(there))
    return {
        name: frozenset(_origins(_id(attribute), origins, copies))
        for name, attribute in zip(result.columns, _items(analysed.output()), strict=True)
    }


def _origins(start: int, origins: dict[int, set[tuple[str, str]]], copies: dict[int, set[int]]) -> set[Any]:
    found: set[tuple[str, str]] = set()
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            found |= origins.get(number, set())
            waiting.extend(copies.get(number, ()))
    return found


def _copied(expression: Any) -> int | None:
    """The attribute that an expression of a projection is a copy of."""
    while expression.getClass().getSimpleName() in _PASSING:
        expression = expression.child()
    return _id(expression) if expression.getClass().getSimpleName() == "AttributeReference" else None


def _nodes(plan: Any) -> Iterator[Any]:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_items(node.children()))


def _id(expression: Any) -> int:
    return int(expression.exprId().id())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
