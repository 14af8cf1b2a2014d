"""Expressions of a mapping's columns, read from the analysed plan: one text from the JVM, not one call per node."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError

_KEEPING = {
    "Project",
    "SubqueryAlias",
    "View",
    "Sort",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "ResolvedHint",
}
"""Nodes whose JSON has all their expressions; the JSON of other nodes may leave some out."""
_LEAF = "LogicalRDD"
_INSTEAD = "replacement"
"""The field of an expression that stands for another one."""
_DEEPEST = 100
"""The deepest expression that is read, in levels. The readers recurse, with some five calls per level, and Python
allows a thousand calls; a loop of ``withColumn`` makes hundreds of levels."""

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A node of an expression tree of Spark (Catalyst).

    Attributes:
        kind: the class's name without its package, such as ``Lower``.
        children: in Spark's order.
        type: data type of literals, casts and columns, as Spark prints it in JSON (``long``,
            ``decimal(12,2)``); else
            empty.
        value: of a literal, as text; None is NULL.
        column: place in the source table, of a ``AttributeReference``.
        depth: levels, itself included.
    """

    kind: str
    children: tuple[Expression, ...] = ()
    type: str = ""
    value: str | None = None
    column: int | None = None
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max((child.depth for child in self.children), default=0))


_DEEP = Expression("TooDeep")
_OF_TYPES: Mapping[str, Callable[[str, str], bool]] = {
    "EqualTo": lambda name, other: name == other,
    "RLike": lambda name, pattern: re.search(pattern, name) is not None,
}
"""Conditions on the names of types."""
"""The stand-in for an expression that is too deep to be read; expressions built on it start at one level again."""


class _TooDeep(Exception):
    """The error that one node of the plan has more levels than are read."""


@dataclass(frozen=True, slots=True)
class Projection:
    """A plan that makes one row of each row of one leaf.

    Attributes:
        columns: names of the output columns in order, each with its expression over the leaf's columns.
        text: the plan's JSON, with every class and every literal of the plan.
    """

    columns: Sequence[tuple[str, Expression]]
    text: str


def projection(plan: Any) -> Projection | None:
    """Reads a plan in one call to the JVM; None if it has other nodes than projections over one leaf.

    Args:
        plan: a ``LogicalPlan`` of the JVM, analysed.
    """
    try:
        text = str(plan.toJSON())
        nodes: list[Node] = json.loads(text)
    except (Py4JError, ValueError):
        return None
    if any(_name(node) not in _KEEPING for node in nodes[:-1]) or _name(nodes[-1]) != _LEAF:
        return None
    known: dict[int, Expression] = {}
    columns: list[tuple[int, str, Expression]] = []
    for place, (column, *_) in enumerate(nodes[-1]["output"]):
        of_leaf = Expression("AttributeReference", type=_type(column), column=place)
        columns.append((_id(column), str(column["name"]), of_leaf))
    for node in reversed(nodes):
        if _name(node) == "Project":
            columns = [named(tree, known) for tree in node["projectList"]]
        known = {number: expression for number, _, expression in columns}
    return Projection([(name, expression) for _, name, expression in columns], text)


def named(tree: list[Node], known: Mapping[int, Expression]) -> tuple[int, str, Expression]:
    """The number, the name and the expression (over the leaf's columns) of a projected column."""
    return _id(tree[0]), str(tree[0]["name"]), expression_of(tree, known)


def expression_of(tree: list[Node], known: Mapping[int, Expression]) -> Expression:
    """Reads one expression from its JSON; ``known``: what each attribute stands for, by number."""
    try:
        expression, end = _read(tree, 0, known)
        assert end == len(tree)
    except _TooDeep:
        expression = _DEEP
    return _DEEP if expression.depth > _DEEPEST else expression


def _read(
    tree: list[Node], place: int, known: Mapping[int, Expression], above: int = 0
) -> tuple[Expression, int]:
    """The expression that begins at a place of the list, and the place where the next one begins.

    A node comes before its children in the list.
    """
    if above > _DEEPEST:
        raise _TooDeep
    node, end = tree[place], place + 1
    children = []
    for _ in range(node["num-children"]):
        child, end = _read(tree, end, known, above + 1)
        children.append(child)
    kind = _name(node)
    if kind == "AttributeReference":
        return known.get(_id(node), Expression("Unknown")), end
    if kind == "NullIf":  # what stands for it names the value only once
        return Expression(
            kind, tuple(_read(node[side], 0, known, above + 1)[0] for side in ("left", "right"))
        ), end
    if kind == "Alias" or (_INSTEAD in node and len(children) == 1):
        return children[0], end
    value = node.get("value") if kind == "Literal" else None
    return folded(Expression(kind, tuple(children), _type(node), value)), end


def folded(one: Expression) -> Expression:
    """The same without what depends on a column's type alone, as functions of the column library do.

    Spark's optimiser does so, too; its analysed plan still has every case.
    """
    if one.kind in _OF_TYPES and one.children[0].kind == "TypeOf" and one.children[1].kind == "Literal":
        name, value = one.children[0].children[0].type, one.children[1].value
        if name and value is not None:
            return Expression("Literal", type="boolean", value=str(_OF_TYPES[one.kind](name, value)).lower())
    if one.kind == "CaseWhen":
        return _without_cases(one)
    return one


def _without_cases(one: Expression) -> Expression:
    """A CASE without conditions that are known to be false, and without what comes after a true one."""
    kept: list[Expression] = []
    pairs = len(one.children) // 2
    for condition, value in zip(one.children[: 2 * pairs : 2], one.children[1 : 2 * pairs : 2], strict=True):
        known = condition.value if condition.kind == "Literal" and condition.type == "boolean" else ""
        if known == "true":
            return replace(one, children=(*kept, value)) if kept else value
        if known != "false":
            kept += [condition, value]
    otherwise = one.children[2 * pairs :]
    if not kept and otherwise:
        return otherwise[0]
    return replace(one, children=(*kept, *otherwise)) if kept else one


def _name(node: Node) -> str:
    return str(node["class"]).rpartition(".")[2]


def _id(node: Node) -> int:
    return int(node["exprId"]["id"])


def _type(node: Node) -> str:
    found = node.get("dataType")
    return found if isinstance(found, str) else ""
