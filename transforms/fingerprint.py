"""What a mapping makes of its rows, as a short text that is another one once the mapping was changed.

It is made of the plan as Spark has analysed it. So layout, comments, names of variables and of columns in between
make no difference, nor do source columns that nothing reads. A function that Spark can't look into is told by its
byte code, and by what it calls of the project's own.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField

from migrator.model.table import TableSchema
from transforms.frames import marked_frame
from transforms.function_text import function_text
from transforms.grain_numbers import numbered
from transforms.grain_values import hashed, value_columns
from transforms.plan import MappingKind, MappingPlan, call
from transforms.row_wise import SUBQUERIES

_TRANSPARENT = {"SubqueryAlias", "View", "ResolvedHint"}
_BY_NAME = {"Project", "Filter", "Join", "Aggregate", "Window", "Sort", "Generate", "WithCTE", "LateralJoin"}
"""Nodes that say which columns of their children they mean; all others mean all of them, in their order."""
_MARKS = {
    "num-children",
    "metadata",
    "qualifier",
    "explicitMetadata",
    "nonInheritableMetadataKeys",
    "nullable",
}
"""Fields of an expression that don't change what it gives, or follow from others."""
_NAMED = {"Alias", "AttributeReference", "NamedLambdaVariable"}
"""Expressions whose names are for people: they are told by number."""
_BOOKKEEPING = {"class", "num-children", "id", "cteId", "originStats", "stats", "alias", "numSlices"}
"""Fields of a node that don't change what it gives."""
_HIDDEN = re.compile("|".join([*SUBQUERIES, "Python"]))
"""In an expression's JSON: parts of it are elsewhere."""
_BYTES = re.compile(r"\[B@[0-9a-f]+")

Node = dict[str, Any]


def versions() -> str:
    """Whose plans and byte code the text is made of: fingerprints of other versions can't be compared."""
    return f"Spark {pyspark.__version__}, Python {platform.python_version().rpartition('.')[0]}"


def fingerprint(spark: SparkSession, plan: MappingPlan) -> str:
    """Of a checked mapping; empty where Spark can't write its plan down. Runs a job where it has constant rows."""
    target, schemas = plan.target, plan.schemas
    try:
        told: list[object] = [
            plan.kind.value,
            target.key,
            target.links,
            target.roles,
            target.surrogates,
            target.grain if not callable(target.grain) else "computed",
            _of(spark, schemas, lambda frames: call(target, frames)),
        ]
        for table in dict.fromkeys(table for table, _, _ in target.values):
            columns = value_columns(target, table)
            told.append(_of(spark, schemas, lambda frames, t=table, c=columns: hashed(frames[t], c)))
        if plan.kind is MappingKind.GRAIN:
            for reach in plan.reaches:
                if not reach.grain:
                    told.append(_of(spark, schemas, lambda frames, r=reach: numbered(target, r, frames)))
    except (Py4JError, json.JSONDecodeError):
        return ""
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _of(spark: SparkSession, schemas: Mapping[str, TableSchema], made: Any) -> object:
    sources, frames = {}, {}
    for name, schema in schemas.items():
        frames[name], leaf = marked_frame(spark, schema, "a mapping's fingerprint")
        sources[leaf] = name
    return _Text(spark, sources).whole(made(frames))


class _Text:
    """Writes one plan down, with columns named by where they come from.

    Args: sources: table by id of the RDD that its empty frame stands on.
    """

    def __init__(self, spark: SparkSession, sources: Mapping[int, str]) -> None:
        self._spark = spark
        self._sources = sources
        self._names: dict[int, str] = {}
        self._leaves: Counter[str] = Counter()
        self._shared: dict[int, tuple[int, list[str]]] = {}

    def whole(self, frame: DataFrame) -> object:
        """The plan, and what each column of the result is."""
        root = frame._jdf.queryExecution().analyzed()
        text = self._plan(root)
        types: list[StructField] = list(frame.schema.fields)
        columns = zip(self._output(root), types, strict=True)
        return [text, sorted([field.name, name, field.dataType.json()] for name, field in columns)]

    def _plan(self, root: Any) -> object:
        return self._node(root, iter(json.loads(root.toJSON())))

    def _node(self, node: Any, told: Iterator[Node]) -> object:
        own, kind = next(told), _kind(node)
        children = [self._node(child, told) for child in _items(node.children())]
        if kind in _TRANSPARENT:
            return children[0]
        if not children:
            return self._leaf(node, kind, own)
        if kind == "CTERelationDef":
            self._shared[node.id()] = len(self._shared), self._output(node)
        expressions = [self._expression(expression) for expression in _items(node.expressions())]
        if kind == "Project":  # what it only hands on is told by whoever uses it
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
            return self._called(node, source, [str(each.name()) for each in _items(node.output())])
        name = self._called(node, kind, [str(n) for n in range(node.output().size())])
        if kind not in ("LogicalRDD", "LocalRelation"):
            return [name, _plain(own)]
        session: Any = self._spark._jsparkSession
        jvm: Any = self._spark._jvm
        rows = DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, node), self._spark)
        return [name, rows.schema.json(), sorted(map(repr, rows.collect()))]

    def _called(self, leaf: Any, name: str, columns: list[str]) -> str:
        """The leaf's name, which its columns are called by from now on."""
        self._leaves[name] += 1
        called = f"{name} {self._leaves[name]}"
        for attribute, column in zip(_items(leaf.output()), columns, strict=True):
            self._names[attribute.exprId().id()] = f"{called}.{column}"
        return called

    def _output(self, node: Any) -> list[str]:
        return [self._name(attribute.exprId().id()) for attribute in _items(node.output())]

    def _name(self, number: int) -> str:
        return self._names.setdefault(number, f"#{len(self._names)}")

    def _expression(self, expression: Any) -> list[Any]:
        text = str(expression.toJSON())
        told: list[Any] = [self._part(part) for part in json.loads(text)]
        if _BYTES.search(text):
            told.append(_without_ids(str(expression.sql())))
        if _HIDDEN.search(text):
            told += self._hidden(expression)
        return told

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
        """A field, with columns' numbers as names."""
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, dict):
            if "jvmId" in value:
                return self._name(int(value["id"]))
            return self._part(value) if "class" in value else {k: self._value(v) for k, v in value.items()}
        return _BYTES.sub("", value) if isinstance(value, str) else value

    def _hidden(self, expression: Any) -> list[Any]:
        """Subqueries and functions of Python's within an expression."""
        found: list[Any] = []
        kind = _kind(expression)
        if kind in SUBQUERIES:
            found.append(self._plan(expression.plan()))
        elif kind.startswith("Python"):
            found.append(function_text(bytes(expression.func().command().unsafeArray())))
        for child in _items(expression.children()):
            found += self._hidden(child)
        return found


def _plain(own: Node) -> dict[str, Any]:
    """A node's settings: its expressions are told apart, lists of places change with columns that nothing reads."""
    fields = {k: v for k, v in own.items() if isinstance(v, str | bool | int | float)}
    objects = {k: v["object"] for k, v in own.items() if isinstance(v, dict) and "object" in v}
    return {k: v for k, v in (fields | objects).items() if k not in _BOOKKEEPING}


def _without_ids(text: str) -> str:
    return re.sub(r"#\d+|_\d+", "", text)


def _kind(tree: Any) -> str:
    return str(tree.getClass().getSimpleName())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))
