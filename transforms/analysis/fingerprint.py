"""The fingerprint of a mapping: a short text that changes when the mapping would make other rows.

It is made from the plan as Spark has analysed it. So layout, comments, names of variables and of columns in between
make no difference, nor do source columns that nothing reads. A function that Spark can't look into is known by its
byte code, and by the functions of the project that it calls.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField

from migrator.model.table import TableSchema
from transforms.analysis.function_text import Unreadable, function_text
from transforms.analysis.grain_numbers import numbered
from transforms.analysis.grain_values import ValueColumn, hashed, value_columns
from transforms.analysis.outline import drawn, outline
from transforms.analysis.plan import MappingKind, MappingPlan, call
from transforms.analysis.row_wise import SUBQUERIES
from transforms.frames import marked_frame

_TRANSPARENT = {"SubqueryAlias", "View", "ResolvedHint"}
_BY_NAME = {"Project", "Filter", "Join", "Aggregate", "Window", "Sort", "Generate", "WithCTE", "LateralJoin"}
"""Nodes that name the columns they take from their children; all other nodes take all columns, in their order."""
_MARKS = {
    "num-children",
    "metadata",
    "qualifier",
    "explicitMetadata",
    "nonInheritableMetadataKeys",
    "nullable",
}
"""Fields of an expression that don't change what it gives, or follow from others."""
_NAMED = {"Alias", "AttributeReference", "NamedLambdaVariable", "PythonUDF"}
"""Expressions whose names are for people: they are known by number."""
_BOOKKEEPING = {"class", "num-children", "id", "cteId", "originStats", "stats", "alias", "numSlices"}
"""Fields of a node that don't change what it gives."""
_HIDDEN = re.compile("|".join([*SUBQUERIES, "Python"]))
"""Words in an expression's JSON that show that some of its parts are written elsewhere."""
_CLASS = re.compile(r'"class":"([^"]+)"')
_LEFT_OUT = re.compile(r"^options: .*\.Map$|(Enumeration\$Value|EvalMode|EvalContext)$")
"""Maps from a field's name to its type. All other maps hold numbers that Spark chooses anew each time."""
_ADDRESS = re.compile(r"@[0-9a-f]+\b|#\d+L?|\$\$Lambda[^\s,)]*")
"""Parts of a text that differ from process to process."""
_BYTES = re.compile(r"\[B@[0-9a-f]+")

_fields: dict[str, list[str]] = {}
"""Answers of ``_unwritten`` so far, by class."""

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A mapping's fingerprint.

    Attributes:
        text: the fingerprint.
        basis: what it is taken with: versions of Spark and Python, and the types of the source columns that are
            read.
        outline: the parts of the mapping (see ``transforms.analysis.outline``).
    """

    text: str
    basis: str
    outline: str = ""


UNKNOWN = Fingerprint("", "")
"""The fingerprint of every mapping whose content can't be read."""


def fingerprint(spark: SparkSession, plan: MappingPlan) -> Fingerprint:
    """Takes the fingerprint of a checked mapping. Runs a job where the mapping has constant rows."""
    target, text = plan.target, _Parts(spark, plan.schemas)
    more = {}
    try:
        main = text.of(lambda frames: call(target, frames))
        parts: list[object] = [
            plan.kind.value,
            target.key,
            target.links,
            target.roles,
            target.surrogates,
            target.grain if not callable(target.grain) else "computed",
            main,
        ]
        for table in dict.fromkeys(table for table, _, _ in target.values):
            parts.append(text.of(partial(_hashed, table, value_columns(target, table))))
            more[f"value {table}"] = drawn(parts[-1], text.functions).whole()
        for number, reach in enumerate(plan.reaches if plan.kind is MappingKind.GRAIN else ()):
            if not reach.grain:
                parts.append(text.of(partial(numbered, target, reach)))
                more[f"grain {number}"] = drawn(parts[-1], text.functions).whole()
    except (Py4JError, json.JSONDecodeError, Unreadable):
        return UNKNOWN
    declared = {"links": target.links, "roles": target.roles, "grain": parts[5]}
    return Fingerprint(
        _hash(parts),
        f"{_versions()}, types {_hash(sorted(text.types))}",
        outline(drawn(main, text.functions), more, declared, text.types),
    )


def _versions() -> str:
    return f"Spark {pyspark.__version__}, Python {platform.python_version().rpartition('.')[0]}"


def _hashed(table: str, columns: Sequence[ValueColumn], frames: dict[str, DataFrame]) -> DataFrame:
    return hashed(frames[table], columns)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class _Parts:
    """The plans of one mapping, as text. ``types``: source columns that they read, with their types; ``functions``:
    ``id`` of each part that is a Python function's content."""

    spark: SparkSession
    schemas: Mapping[str, TableSchema]
    types: set[str] = field(default_factory=set)
    functions: dict[int, object] = field(default_factory=dict)

    def of(self, function: Callable[[dict[str, DataFrame]], DataFrame]) -> object:
        """Returns what a function makes of empty source tables, as plain values."""
        sources, frames = {}, {}
        for name, schema in self.schemas.items():
            frames[name], leaf = marked_frame(self.spark, schema, "a mapping's fingerprint")
            sources[leaf] = name
        return _Text(self.spark, sources, self.types, self.functions).whole(function(frames))


class _Text:
    """The writer of one plan, with columns named by where they come from.

    Args:
        spark: reads constant rows.
        sources: table by id of the RDD that its empty frame stands on.
        types: gets the source columns that are read, with their types.
        functions: gets the parts that are functions' content, by ``id``.
    """

    def __init__(
        self, spark: SparkSession, sources: Mapping[int, str], types: set[str], functions: dict[int, object]
    ) -> None:
        self._spark = spark
        self._sources = sources
        self._read = types
        self._functions = functions
        self._types: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._between = itertools.count()
        self._leaves: Counter[str] = Counter()
        self._shared: dict[int, tuple[int, list[str]]] = {}

    def whole(self, frame: DataFrame) -> object:
        """Returns the plan, and what each column of the result is."""
        root = frame._jdf.queryExecution().analyzed()
        text = self._plan(root)
        types: list[StructField] = list(frame.schema.fields)
        columns = zip(self._output(root), types, strict=True)
        return [text, sorted([field.name, name, field.dataType.json()] for name, field in columns)]

    def _plan(self, root: Any) -> object:
        return self._node(root, iter(json.loads(root.toJSON())))

    def _node(self, node: Any, nodes: Iterator[Node]) -> object:
        own, kind = next(nodes), _kind(node)
        children = [self._node(child, nodes) for child in _items(node.children())]
        if kind in _TRANSPARENT:
            return children[0]
        if not children:
            return self._leaf(node, kind, own)
        if kind == "CTERelationDef":
            self._shared[node.id()] = len(self._shared), self._output(node)
        expressions = [self._expression(expression) for expression in _items(node.expressions())]
        if kind == "Project":  # a column that it only hands on stands where it is used
            expressions = [text for text in expressions if text[0][0] != "AttributeReference"]
            if not expressions:
                return children[0]
        meant = [] if kind in _BY_NAME else [self._output(child) for child in _items(node.children())]
        return [kind, _plain(own), meant, expressions, children]

    def _leaf(self, node: Any, kind: str, own: Node) -> object:
        if kind == "CTERelationRef":
            number, columns = self._shared[node.cteId()]
            return self._called(node, f"shared {number}", columns)
        source = self._sources.get(node.rdd().id()) if kind == "LogicalRDD" else None
        if source is not None:
            for attribute in _items(node.output()):
                column = f"{source}.{attribute.name()} {attribute.dataType().json()}"
                self._types[attribute.exprId().id()] = column
            return self._called(node, source, [str(attribute.name()) for attribute in _items(node.output())])
        name = self._called(node, kind, [str(n) for n in range(node.output().size())])
        if kind not in ("LogicalRDD", "LocalRelation"):
            return [name, _plain(own)]
        session: Any = self._spark._jsparkSession
        jvm: Any = self._spark._jvm
        rows = DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, node), self._spark)
        return [name, rows.schema.json(), sorted(map(repr, rows.collect()))]

    def _called(self, leaf: Any, name: str, columns: list[str]) -> str:
        """Returns the leaf's name, by which its columns are called from now on."""
        self._leaves[name] += 1
        called = f"{name} {self._leaves[name]}"
        for attribute, column in zip(_items(leaf.output()), columns, strict=True):
            self._names[attribute.exprId().id()] = f"{called}.{column}"
        return called

    def _output(self, node: Any) -> list[str]:
        return [self._name(attribute.exprId().id()) for attribute in _items(node.output())]

    def _name(self, number: int) -> str:
        if number in self._types:
            self._read.add(self._types[number])
        if number not in self._names:
            self._names[number] = f"#{next(self._between)}"
        return self._names[number]

    def _expression(self, expression: Any) -> list[Any]:
        text = str(expression.toJSON())
        nodes: list[Node] = json.loads(text)
        parts: list[Any] = [self._part(node) for node in nodes]
        if _BYTES.search(text):
            parts.append(_without_ids(str(expression.sql())))
        if _HIDDEN.search(text) or any(_unwritten(self._spark, name) for name in set(_CLASS.findall(text))):
            parts += self._hidden(expression, nodes)
        return parts

    def _part(self, part: Node) -> list[Any]:
        kind = str(part["class"]).rpartition(".")[2]
        left_out = {
            *_MARKS,
            "class",
            *(["name"] if kind in _NAMED else []),
            *(["plan"] if kind in SUBQUERIES else []),
        }
        return [kind, part["num-children"], {k: self._value(v) for k, v in part.items() if k not in left_out}]

    def _value(self, value: Any) -> Any:
        """Returns a field, with columns' numbers as names."""
        if isinstance(value, list):
            return [self._value(member) for member in value]
        if isinstance(value, dict):
            if "jvmId" in value:
                return self._name(int(value["id"]))
            return self._part(value) if "class" in value else {k: self._value(v) for k, v in value.items()}
        return _BYTES.sub("", value) if isinstance(value, str) else value

    def _hidden(self, expression: Any, nodes: Sequence[Node]) -> list[Any]:
        """Returns the subqueries, Python functions, options and modes within an expression, whose JSON is ``nodes``.

        Asks the JVM only for nodes that have some: a long expression has thousands, and each question takes its time.
        """
        found: list[Any] = []
        for node, own in zip(_nodes(expression, nodes, self._tells), nodes, strict=True):
            if node is None:
                continue
            kind = _class_of(own)
            for name in _unwritten(self._spark, str(own["class"])):
                found.append([kind, name, _ADDRESS.sub("", str(getattr(node, name)()))])
            if kind in SUBQUERIES:
                found.append(self._plan(node.plan()))
            elif kind.startswith("Python"):
                found.append(function_text(bytes(node.func().command().unsafeArray())))
                self._functions[id(found[-1])] = found[-1]
        return found

    def _tells(self, own: Node) -> bool:
        kind = _class_of(own)
        return (
            kind in SUBQUERIES
            or kind.startswith("Python")
            or bool(_unwritten(self._spark, str(own["class"])))
        )


def _nodes(expression: Any, nodes: Sequence[Node], wanted: Callable[[Node], bool]) -> Iterator[Any]:
    """The nodes of an expression, its own first, as they stand in its JSON; None for one that isn't wanted.

    Spark numbers nodes in this order too, but counts a subquery's plan in.
    """
    if not any(_class_of(own) in SUBQUERIES for own in nodes):
        yield from (expression.apply(number) if wanted(own) else None for number, own in enumerate(nodes))
        return
    yield from _all_of(expression)


def _all_of(expression: Any) -> Iterator[Any]:
    yield expression
    for child in _items(expression.children()):
        yield from _all_of(child)


def _class_of(own: Node) -> str:
    return re.split(r"[.$]", str(own["class"]).rstrip("$"))[-1]


def _unwritten(spark: SparkSession, name: str) -> list[str]:
    """Returns the fields of a class of expressions that Spark's JSON leaves out: maps of options, modes."""
    if name not in _fields:
        jvm: Any = spark._jvm
        declared = jvm.java.lang.Class.forName(name).getDeclaredFields()
        _fields[name] = [
            str(one.getName())
            for one in declared
            if _LEFT_OUT.search(f"{one.getName()}: {one.getType().getName()}")
        ]
    return _fields[name]


def _plain(own: Node) -> dict[str, Any]:
    """Returns a node's settings. Its expressions are written elsewhere; lists of places change with columns that
    nothing reads."""
    fields = {k: v for k, v in own.items() if isinstance(v, str | bool | int | float)}
    objects = {k: v["object"] for k, v in own.items() if isinstance(v, dict) and "object" in v}
    return {k: v for k, v in (fields | objects).items() if k not in _BOOKKEEPING}


def _without_ids(text: str) -> str:
    return re.sub(r"#\d+|_\d+", "", text)


def _kind(tree: Any) -> str:
    return str(tree.getClass().getSimpleName())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
