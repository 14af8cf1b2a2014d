"""Recognises row-wise functions from the analysed plan, and the columns they read from the optimised one.

Each node of a plan either is made of constants only, or depends on source tables. The rules say which nodes
keep ``f(A + B) = f(A) + f(B)``; whatever no rule knows is refused. The walk goes over Spark's own tree
through Py4J, for the answer must be about what Spark will run, not about what the source text looks like.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark import SparkContext

# One input row makes rows of its own here, whatever rows are beside it; order and partitioning do not matter.
_UNARY = {
    "Project", "Filter", "Generate", "Expand", "SubqueryAlias", "View", "ResolvedHint", "Sort", "Repartition",
    "RepartitionByExpression", "RebalancePartitions", "CTERelationDef", "LateralJoin",
}  # fmt: skip
_CONSTANT_ONLY = {"Aggregate", "Distinct", "Intersect", "Except"}
_CONSTANT_LEAVES = {"LocalRelation", "OneRowRelation", "Range"}
_GENERATORS = {"Explode", "PosExplode", "Inline", "Stack", "JsonTuple", "VariantExplode"}
SUBQUERIES = {"ScalarSubquery", "ListQuery", "Exists", "LateralSubquery"}
_CLOCKS = {
    "CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp", "CurrentTime", "CurrentBatchTimestamp",
    "CurrentUser",
}  # fmt: skip
_REPLACEABLE = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
_CLOCK_WORDS = {"now", "today", "yesterday", "tomorrow"}
_SUSPICIOUS = re.compile(
    r"collectlist|collectset|first|last|anyvalue|listagg|aggregate\.mode\b|rownumber|ntile|nthvalue|expressions\.(lag|lead)\b"
    "|current|now|local_?time|today|yesterday|tomorrow|subquery|exists|listquery",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"plans\.logical\.SubqueryAlias|physical\.UnknownPartitioning|expressions\.Nulls(First|Last)\$"
)
"""Harmless classes whose names look like those above."""
_WORDS = {"Deduplicate": "Distinct", "GlobalLimit": "Limit", "LocalLimit": "Limit"}
_BY_CHANCE = {"GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample", "LimitAndOffset"}
"""Nodes whose kept rows depend on all rows of the table, or on their order: no grain can hold that."""
_SORTED = {"SortArray", "ArraySort"}
_BY_ORDER = {"CollectList", "CollectSet", "First", "Last", "AnyValue"}
"""Aggregates that show in which order rows came, whatever Spark says of their determinism."""
_OF_WINDOWS = {"RowNumber", "NTile", "NthValue", "Lag", "Lead"}
"""Functions that show the order of rows in windows that have no order, or are ordered by a constant."""
_LEFT_SIDE = {"INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"}
_RIGHT_SIDE = {"INNER", "CROSS", "RIGHT OUTER"}

Tables = frozenset[str]


class PlanWalk:
    """One walk over the analysed plan of a mapping function.

    Attributes:
        tables: source tables met, and how often: a table met once isn't joined with itself.
        grains: what keeps the function from being row-wise, e.g. ``Aggregate over flights``.
        never: those among them that no grain could allow, e.g. ``Limit over flights``.
        unrepeatable: expressions that give another value when rows are replayed, e.g. ``rand``.
    """

    def __init__(self, sources: dict[int, str], marker: str) -> None:
        """Args: sources: table by id of the RDD its empty frame stands on; marker: the name of those RDDs."""
        self._sources = sources
        self._marker = marker
        self._ctes: dict[int, Tables] = {}
        self._correlated = 0
        self.tables: Counter[str] = Counter()
        self.grains: list[str] = []
        self.never: list[str] = []
        self.unrepeatable: list[str] = []

    def visit(self, node: Any) -> Tables:
        """The source tables that a subtree depends on; none means it is constant."""
        kind = _kind(node)
        for expression in _items(node.expressions()):
            if not surely_repeatable(expression):
                self._expression(expression)
        children = [self.visit(child) for child in _items(node.children())]
        if not children:
            return self._leaf(node, kind)
        over = frozenset[str]().union(*children)
        if kind == "WithCTE":
            return children[-1]
        if kind == "CTERelationDef":
            self._ctes[node.id()] = over
        if kind == "Join":
            self._join(node, *children)
        elif kind == "Union":
            if over and not all(children):
                self._refuse(f"Union of constant rows with {_list(over)}")
        elif kind == "Generate" and _kind(node.generator()) not in _GENERATORS:
            self._refuse(f"table function {_kind(node.generator())} over {_list(over)}", never=True)
        elif kind not in _UNARY and (over or not _constant(node, kind)):
            whole = bool(over) and self._whole(node, kind)
            word = f"{_WORDS.get(kind, kind)} over {'all rows of ' if whole else ''}"
            never = whole or kind in _BY_CHANCE or (kind == "Deduplicate" and not _constant(node, kind))
            self._refuse(f"{word}{_list(over) or 'constant rows'}", never)
        return over

    def _whole(self, node: Any, kind: str) -> bool:
        """Tells whether a node looks at all rows at once. In a correlated subquery these are the rows of one outer
        row."""
        if kind == "Aggregate":
            return not self._correlated and node.groupingExpressions().size() == 0
        return bool(kind == "Window" and node.partitionSpec().size() == 0)

    def _leaf(self, node: Any, kind: str) -> Tables:
        if kind == "LogicalRDD":
            table = self._sources.get(node.rdd().id())
            if table is not None:
                self.tables[table] += 1
                return frozenset((table,))
            if self._marker in node.rdd().toDebugString():
                self._refuse("a copy of source rows made outside the plan (RDD, checkpoint)", never=True)
        elif kind == "CTERelationRef":
            over = self._ctes.get(node.cteId(), frozenset())
            self.tables.update(over)
            return over
        elif kind not in _CONSTANT_LEAVES:
            self._refuse(f"{kind}, data that is no source table", never=True)
        return frozenset()

    def _join(self, node: Any, left: Tables, right: Tables) -> None:
        kind = str(node.joinType().sql())
        if left and right:
            same = left == right and len(left) == 1
            self._refuse(f"Join of {_list(left)} with {'itself' if same else _list(right)}")
        elif (left and kind not in _LEFT_SIDE) or (right and kind not in _RIGHT_SIDE):
            self._refuse(f"{kind} Join that keeps constant rows, over {_list(left | right)}")

    def _expression(self, expression: Any, ordered: bool = False, unordered: bool = False) -> None:
        """Looks for what can't be repeated.

        ``ordered``: whether its array is sorted at once, or its rows are: then their order can't be seen.
        ``unordered``: whether it is a function over a window without an order.
        """
        kind = _kind(expression)
        if kind in SUBQUERIES:
            correlated = int(expression.outerAttrs().size() > 0)
            self._correlated += correlated
            over = self.visit(expression.plan())
            self._correlated -= correlated
            if over:
                self._refuse(f"subquery over {_list(over)}")
        children = list(_items(expression.children()))
        if is_instance_of(_gateway(), expression, _REPLACEABLE):  # to_date(x) stands for a cast, and so on
            children.append(expression.replacement())
        by_order = kind in _BY_ORDER or (kind in _OF_WINDOWS and unordered) or _takes_any(expression, kind)
        chance = not expression.deterministic() and all(c.deterministic() for c in children)
        if kind in _CLOCKS or (not ordered if by_order else chance):
            self._unrepeatable(_function_name(expression, kind))
        if kind == "Cast" and _kind(children[0]) == "Literal":
            word = str(children[0].value()).strip().lower()  # "now", or "today Europe/Berlin"
            if word.split(" ")[0] in _CLOCK_WORDS and "string" not in expression.dataType().simpleString():
                self._unrepeatable(f"'{word}'")
        window = kind == "WindowExpression"
        in_order = window and any(not one.child().foldable() for one in _items(_orders(expression)))
        # an array of a window may be sorted behind it, in another node
        kept = in_order or (window and _aggregate(children[0]) in ("CollectList", "CollectSet"))
        passed = kind in _SORTED or kept or (ordered and kind == "AggregateExpression")
        for child in children:
            self._expression(child, passed, window and not in_order)

    def _refuse(self, text: str, never: bool = False) -> None:
        for found in (self.grains, self.never) if never else (self.grains,):
            if text not in found:
                found.append(text)

    def _unrepeatable(self, name: str) -> None:
        if name not in self.unrepeatable:
            self.unrepeatable.append(name)


def columns_read(optimised: Any, sources: dict[int, str]) -> dict[str, set[int]]:
    """Indexes of the columns that an optimised plan needs, for each source table.

    The optimiser has pruned what nothing uses; what is left is referenced by a node, passed on by a union
    (which refers to its inputs by place), or handed out by the whole plan.
    """
    needed = {attribute.exprId().id() for attribute in _items(optimised.output())}
    leaves: list[tuple[str, list[int]]] = []
    waiting = [optimised]
    while waiting:
        node = waiting.pop()
        children = list(_items(node.children()))
        waiting.extend(children)
        needed.update(attribute.exprId().id() for attribute in _items(node.references().toSeq()))
        if _kind(node) == "Union":
            needed.update(a.exprId().id() for child in children for a in _items(child.output()))
        if _kind(node) == "LogicalRDD" and node.rdd().id() in sources:
            ids = [attribute.exprId().id() for attribute in _items(node.output())]
            leaves.append((sources[node.rdd().id()], ids))
    read: dict[str, set[int]] = {}
    for table, ids in leaves:
        read.setdefault(table, set()).update(index for index, number in enumerate(ids) if number in needed)
    return read


def _constant(node: Any, kind: str) -> bool:
    if kind == "Deduplicate":  # by some of the columns, which row stays is open
        return bool(node.keys().size() == node.output().size())
    return kind in _CONSTANT_ONLY


def surely_repeatable(tree: Any, text: str | None = None) -> bool:
    """Tells whether a whole expression tree is harmless, in two calls to the JVM instead of ten for every node of it.

    Only a hint, on the safe side: whatever looks like a clock or a subquery, in a class name or in a literal, and
    whatever Spark holds to be nondeterministic, is walked node by node.

    Args:
        tree: the expression; or a plan whose ``text`` has all its expressions
            (``transforms.analysis.expressions``).
        text: its JSON, if that was asked for before.
    """
    if not tree.deterministic():
        return False
    return _SUSPICIOUS.search(_PLAIN.sub("", text or tree.toJSON())) is None


def _takes_any(expression: Any, kind: str) -> bool:
    """Tells whether ``listagg`` or ``mode`` was called without an order: then several results are possible."""
    if kind == "ListAgg":
        return bool(expression.orderExpressions().isEmpty())
    return kind == "Mode" and bool(expression.reverseOpt().isEmpty())


def _aggregate(function: Any) -> str:
    return _kind(function.aggregateFunction()) if _kind(function) == "AggregateExpression" else ""


def _orders(window: Any) -> Any:
    return window.windowSpec().orderSpec()


def _function_name(expression: Any, kind: str) -> str:
    return str(expression.name() if kind == "PythonUDF" else expression.prettyName())


def _gateway() -> Any:
    return SparkContext._gateway


def _kind(tree: Any) -> str:
    return str(tree.getClass().getSimpleName())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _list(tables: Tables) -> str:
    return " and ".join(sorted(tables))
