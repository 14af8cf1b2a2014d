"""Pieces of forward mappings: which old rows a part of a new table is made of, read from the analysed plan.

A piece has one old table as its root, each of whose rows gives at most one new row. What a plan does beyond
projections, filters, unions and joins that keep the root's rows single is opaque: nothing is turned round.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from transforms.analysis.expressions import Expression, expression_of, named
from transforms.analysis.plan import MappingPlan, call
from transforms.frames import marked_frame

FAR = 10_000
"""Columns of tables that are joined to the root have a place from here on; no table has so many columns."""
UNKNOWN = Expression("Unknown")
_SAME = {"SubqueryAlias", "View", "Sort", "Repartition", "RepartitionByExpression", "ResolvedHint"}
_KEEPS_LEFT = {"Inner": False, "LeftOuter": True}
"""Joins after which a row of the left side is still one row, unless the right side has several; whether all stay."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The rows of a new table that are made of one old table.

    Attributes:
        target: the new table.
        key: its key columns.
        root: the old table; empty where the piece is opaque.
        columns: what each new column is, over the root's columns by place; columns of joined tables count from
            ``FAR``.
        conditions: what holds of the root's rows that are there.
        whole: whether every row of the root for which they hold is there.
        surrogates: new columns that hold numbers of key maps, with the map.
    """

    target: str
    key: tuple[str, ...]
    root: str
    columns: Mapping[str, Expression]
    conditions: tuple[Expression, ...] = ()
    whole: bool = True
    surrogates: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Branch:
    root: str
    known: Mapping[int, Expression]
    conditions: tuple[Expression, ...] = ()
    whole: bool = True


def pieces(spark: SparkSession, plan: MappingPlan) -> list[Piece]:
    """Returns the pieces of a checked mapping, in the order in which it unites them. Runs no job."""
    frames, leaves = {}, {}
    for name, schema in plan.schemas.items():
        frames[name], leaf = marked_frame(spark, schema, f"pieces of {name} {uuid.uuid4()}")
        leaves[leaf] = name
    result = call(plan.target, frames)
    root = result._jdf.queryExecution().analyzed()
    written = {column.name: column.spark_type for column in plan.columns}
    types = {field.name: field.dataType.simpleString() for field in result.schema.fields}
    numbers = dict(zip(result.columns, (_id(one) for one in _items(root.output())), strict=True))
    found = []
    for branch in _Reader(leaves, plan).branches(root):
        columns = {
            name: _converted(branch.known.get(numbers[name], UNKNOWN), types[name], wanted)
            for name, wanted in written.items()
        }
        surrogates = dict(plan.target.surrogates)
        keyed = all(_of_root(columns[name]) for name in plan.target.key) or _one_a_row(plan, branch.root)
        origin = branch.root if keyed else ""
        conditions = branch.conditions
        found.append(
            Piece(plan.target.name, plan.target.key, origin, columns, conditions, branch.whole, surrogates)
        )
    return found


def _one_a_row(plan: MappingPlan, root: str) -> bool:
    """Tells whether the declared grain is the root's own key."""
    return any(one.root.schema.id.name == root and one.grain == one.root.schema.key for one in plan.reaches)


def _converted(expression: Expression, found: str, wanted: str) -> Expression:
    """A value of another type than the new column's as the tool converts it: it keeps it, or fails."""
    if found == wanted or expression.kind == "Literal":
        return expression
    return Expression("ExactCast", (Expression("Typed", (expression,), found),), wanted)


def _of_root(expression: Expression) -> bool:
    """Tells whether a value is made of the root's columns, or is constant."""
    return all(
        one.kind not in ("Unknown", "TooDeep") and (one.column or 0) < FAR for one in parts(expression)
    )


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it."""
    waiting = [expression]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(one.children)


class _Reader:
    """Reader of one plan.

    Args:
        leaves: old tables, by the id of the RDD that stands for each.
        plan: the mapping.
    """

    def __init__(self, leaves: Mapping[int, str], plan: MappingPlan):
        self._leaves = leaves
        self._plan = plan

    def branches(self, node: Any) -> list[_Branch]:
        """The branches of a node's rows; one with an empty root where it is opaque."""
        kind = node.getClass().getSimpleName()
        children = list(_items(node.children()))
        if kind == "LogicalRDD" and node.rdd().id() in self._leaves:
            return [self._leaf(node)]
        if kind in _SAME:
            return self.branches(children[0])
        if kind == "Window":
            return self.branches(children[0])
        if kind == "Project":
            return [self._projected(node, one) for one in self.branches(children[0])]
        if kind == "Filter":
            return [self._filtered(node, one) for one in self.branches(children[0])]
        if kind == "Union":
            return [one for child in children for one in self._united(node, child)]
        if kind == "Join" and str(node.joinType()) in _KEEPS_LEFT:
            return self._joined(node, *children)
        return [_Branch("", {})]

    def _leaf(self, node: Any) -> _Branch:
        schema = self._plan.schemas[self._leaves[node.rdd().id()]]
        known = {
            _id(attribute): Expression("AttributeReference", type=_type(attribute), column=place)
            for place, attribute in enumerate(_items(node.output()))
        }
        return _Branch(schema.id.name, known)

    def _projected(self, node: Any, branch: _Branch) -> _Branch:
        known = {}
        for one in _items(node.projectList()):
            number, _, expression = named(_tree(one), branch.known)
            known[number] = _marked(one, expression)
        return replace(branch, known=known)

    def _filtered(self, node: Any, branch: _Branch) -> _Branch:
        condition = node.condition()
        read = _marked(condition, expression_of(_tree(condition), branch.known))
        return replace(branch, conditions=(*branch.conditions, *_both(read)))

    def _united(self, union: Any, child: Any) -> list[_Branch]:
        found = []
        outputs = list(zip(_items(union.output()), _items(child.output()), strict=True))
        for branch in self.branches(child):
            known = {_id(here): branch.known.get(_id(there), UNKNOWN) for here, there in outputs}
            found.append(replace(branch, known=known))
        return found

    def _joined(self, node: Any, left: Any, right: Any) -> list[_Branch]:
        """The left branches, with what the right side gives them; which rows an inner join drops isn't followed."""
        keeps = _KEEPS_LEFT[str(node.joinType())]
        others = self.branches(right)
        far = _moved(others[0].known) if len(others) == 1 else {}
        return [
            replace(one, known={**far, **one.known}, whole=one.whole and keeps) for one in self.branches(left)
        ]


def _both(condition: Expression) -> tuple[Expression, ...]:
    if condition.kind == "And":
        return tuple(one for child in condition.children for one in _both(child))
    return () if condition.kind == "Literal" and condition.value == "true" else (condition,)


def _moved(known: Mapping[int, Expression]) -> dict[int, Expression]:
    return {number: _far(expression) for number, expression in known.items()}


def _far(expression: Expression) -> Expression:
    place = None if expression.column is None else expression.column + FAR
    return replace(expression, column=place, children=tuple(map(_far, expression.children)))


def _marked(one: Any, expression: Expression) -> Expression:
    """An expression that gives NULL for what fails elsewhere is marked: its JSON doesn't tell."""
    tries = "try_" in str(one.sql()).lower()
    return Expression("Try", (expression,)) if tries else expression


def _tree(expression: Any) -> list[dict[str, Any]]:
    """An expression's JSON, with the bytes of binary literals: JSON has only where they lie in memory."""
    tree: list[dict[str, Any]] = json.loads(expression.toJSON())
    binary = [node for node in tree if str(node.get("value", "")).startswith("[B@")]
    if binary:
        written = re.findall(r"X'([0-9A-F]*)'", str(expression.sql()))
        for place, node in enumerate(binary):
            known = len(written) == len(binary)
            node["value"] = f"0x{written[place]}" if known else f"bytes {uuid.uuid4()}"
    return tree


def _type(attribute: Any) -> str:
    return str(attribute.dataType().simpleString())


def _id(expression: Any) -> int:
    return int(expression.exprId().id())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
