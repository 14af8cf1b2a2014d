"""One query of a ``.sql`` mapping: parsed by Spark's own parser, called with frames like a Python function.

Which tables it reads is taken from the parsed plan, after Spark has put in its common table expressions:
their names are none of the source's. The parser is Spark's for queries alone: a statement that writes, or
sets something, is no mapping, and it would run at once if it were handed to ``spark.sql``, which also puts
values of the environment into the text (``${env:...}``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from transforms.cause import spark_cause

_views = threading.Lock()
"""Two queries may read tables of one name; between making the views and resolving them nobody else may."""


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query over source tables.

    Attributes:
        file: the ``.sql`` file.
        line: where its head begins.
        text: the query, with an empty line for each line of the file before it: Spark's line numbers are the
            file's.
        tables: source tables in order of mention, with the line that mentions each first.
    """

    file: Path
    line: int
    text: str
    tables: Mapping[str, int]

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The query's rows, from one frame per table in the order of ``tables``. Raises Spark's own errors."""
        spark = frames[0].sparkSession
        session: Any = spark._jsparkSession
        catalog = session.sessionState().catalog()
        with _views:
            try:
                for name, frame in zip(self.tables, frames, strict=True):
                    frame.createOrReplaceTempView(_quoted(name))
                # resolved here and now: what it reads are the frames, whatever becomes of the names
                dataset = _jvm(spark).org.apache.spark.sql.classic.Dataset
                return DataFrame(dataset.ofRows(session, _parser(spark).parseQuery(self.text)), spark)
            finally:
                for (
                    name
                ) in self.tables:  # not spark.catalog.dropTempView: it would drop cached rows of the frames
                    catalog.dropTempView(name)

    def where(self) -> str:
        """File and line, for messages."""
        return f"{self.file}:{self.line}"

    def where_named(self, table: str) -> str:
        """File and line that name a table first."""
        return f"{self.file}:{self.tables[table]}"

    def where_failing(self, error: Exception) -> str:
        """File and the line that Spark names, else where the query begins."""
        return f"{self.file}:{_line(error) or self.line}"


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A value computed from one row, written as an expression (``-- value: title.code = lower(title)``)."""

    text: str

    def __call__(self, rows: DataFrame) -> Column:
        """The expression; it may name the columns of ``rows``. Raises Spark's own errors."""
        return F.expr(self.text)


def parsed(spark: SparkSession, file: Path, line: int, text: str) -> SqlQuery:
    """The query and the tables it reads. Raises ``MappingError`` naming file, line and cause."""
    try:
        plan = _parser(spark).parseQuery(text)
        plan = _object(_jvm(spark).org.apache.spark.sql.catalyst.analysis, "CTESubstitution").apply(plan)
    except PySparkException as error:
        raise MappingError(
            f"{file.name} holds no query that Spark understands",
            where=f"{file}:{_line(error) or line}",
            cause=spark_cause(error),
            remedy="correct the line; below the head stands one SELECT (or WITH ... SELECT), ended by ; or nothing",
        ) from error
    tables: dict[str, int] = {}
    folded: dict[str, str] = {}
    for relation in _relations(plan):
        parts = [str(part) for part in _items(relation.multipartIdentifier())]
        at = _option(relation.origin().line()) or line
        if len(parts) > 1:
            raise MappingError(
                f"{file.name} reads {'.'.join(parts)}, which is no source table",
                where=f"{file}:{at}",
                remedy=f"name the table alone: {parts[-1]}; it is one of the source's schema, or database",
            )
        if folded.setdefault(parts[0].lower(), parts[0]) != parts[0]:
            raise MappingError(
                f"{file.name} writes a table's name in two ways",
                where=f"{file}:{at}",
                cause=f"{folded[parts[0].lower()]} and {parts[0]} are one name to Spark's SQL",
                remedy="write it as the source does; tables that differ in case only need a function in Python",
            )
        tables.setdefault(parts[0], at)
    if not tables:
        raise MappingError(
            f"a query in {file.name} reads no table",
            where=f"{file}:{line}",
            remedy="select from source tables; put constant rows into the target's Alembic revision",
        )
    return SqlQuery(file, line, text, tables)


def _relations(plan: Any) -> Iterator[Any]:
    """Every relation named in a plan, in the order of the text as far as the plan keeps it."""
    if plan.getClass().getSimpleName() == "UnresolvedRelation":
        yield plan
    for child in _items(plan.children()):
        yield from _relations(child)
    for expression in _items(plan.expressions()):
        yield from _relations_within(expression)


def _relations_within(expression: Any) -> Iterator[Any]:
    if expression.getClass().getSimpleName() in _WITH_PLANS:
        yield from _relations(expression.plan())
    for child in _items(expression.children()):
        yield from _relations_within(child)


_WITH_PLANS = {
    "ScalarSubquery",
    "ListQuery",
    "Exists",
    "LateralSubquery",
    "FunctionTableSubqueryArgumentExpression",
}


def _parser(spark: SparkSession) -> Any:
    return _object(_jvm(spark).org.apache.spark.sql.catalyst.parser, "CatalystSqlParser")


def _object(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _option(value: Any) -> int | None:
    return int(value.get()) if value.isDefined() else None


def _line(error: Exception) -> int | None:
    origin: Any = error._origin if isinstance(error, CapturedException) else None
    return _option(origin.line()) if origin is not None and hasattr(origin, "line") else None


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
