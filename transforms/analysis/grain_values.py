"""Values that a mapping computes from single rows, for use in links and grains: ``values=``.

    values={"title.code": lambda title: slug(title.title)}

The mirror keeps a hash of each value beside the row, in a column of its own. So a link by a computed value is
a link by a column, looked up by an index, and the row's value before a change is there as well. Rows whose
values are equal have equal hashes; different values may share one, then more rows are looked at than had to
be, which changes nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from migrator.model.reach import Reach
from migrator.model.table import Column, TableSchema
from transforms.analysis.row_wise import PlanWalk
from transforms.cause import spark_cause
from transforms.declared_grain import GrainProblem, value_column
from transforms.frames import arrow_frame, marked_frame
from transforms.registry import TargetMapping

_ROW = "~row"
_APPROXIMATE = ("float", "double")


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """One value: the column that keeps its hash, and the mapping that declares it."""

    column: str
    target: TargetMapping
    name: str

    def of(self, rows: DataFrame) -> SparkColumn:
        """The value, from rows of its table. Raises ``MappingError`` when the function can't be called."""
        function = next(f for table, name, f in self.target.values if f"{table}.{name}" == self.name)
        try:
            value = function(rows)
            if not isinstance(value, SparkColumn):
                raise TypeError(f"it returns {type(value).__name__}, not a column")
            rows.select(value)
        except Exception as error:
            raise MappingError(
                f"the value {self.name} of target table {self.target.name!r} fails when called",
                where=self.target.where(),
                cause=spark_cause(error),
                remedy="return one column made from the function's parameter: lambda title: slug(title.title)",
            ) from error
        return value


def value_columns(target: TargetMapping, table: str) -> tuple[ValueColumn, ...]:
    """The values that a mapping declares for a source table."""
    return tuple(
        ValueColumn(value_column(target.name, name), target, f"{table}.{name}")
        for of, name, _ in target.values
        if of == table
    )


def hashed(rows: DataFrame, values: Sequence[ValueColumn], *keep: str) -> DataFrame:
    """The rows with only the columns ``keep`` and a column with the hash of each value."""
    kept = [rows[name].alias(name) for name in keep]
    return rows.select(*kept, *(F.xxhash64(value.of(rows)).alias(value.column) for value in values))


def with_hashes(
    spark: SparkSession, schema: TableSchema, values: Sequence[ValueColumn], rows: pa.Table
) -> pa.Table:
    """The rows in their order, with one more column for the hash of each value. Runs a Spark job."""
    numbered = rows.append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
    wider = replace(schema, columns=(*schema.columns, Column(_ROW, "int64", False, "bigint")))
    found = hashed(arrow_frame(spark, numbered, wider), values, _ROW).toArrow().sort_by(_ROW)
    for value in values:
        rows = rows.append_column(value.column, found[value.column])
    return rows


def check_values(spark: SparkSession, target: TargetMapping, schemas: Mapping[str, TableSchema]) -> None:
    """Calls the functions on empty tables. Raises ``GrainProblem``, ``MappingError``; runs no job."""
    for table in dict.fromkeys(table for table, _, _ in target.values):
        for value in value_columns(target, table):
            _check(spark, value, schemas[table])


def _makes_rows(plan: Any) -> bool:
    children = plan.children()
    return plan.nodeName() == "Generate" or any(
        _makes_rows(children.apply(n)) for n in range(children.size())
    )


def _check(spark: SparkSession, value: ValueColumn, schema: TableSchema) -> None:
    marker = f"value of {value.name} {uuid.uuid4()}"
    frame, leaf = marked_frame(spark, schema, marker)
    result = frame.select(value.of(frame).alias("value"))
    plan = result._jdf.queryExecution().analyzed()
    if _makes_rows(plan):
        raise GrainProblem(
            f"the value {value.name} is several values of one row",
            "it makes rows (explode, inline): a row has one value to be linked by, and belongs to one grain",
            "link by a table that has a row for each of them; or make the rows in a target of its own, whose function"
            " needs no grain for that, and count or join them in a view of the new schema"
            " (docs/how-to/mapping/grains.md)",
        )
    walk = PlanWalk({leaf: schema.id.name}, marker)
    walk.visit(plan)
    if walk.grains or walk.never:
        raise GrainProblem(
            f"the value {value.name} is computed from several rows",
            "; ".join(walk.grains or walk.never),
            "compute it from one row alone; what depends on linked rows belongs into a computed grain (a lambda)",
        )
    if walk.unrepeatable:
        raise GrainProblem(
            f"the value {value.name} is another one each time",
            f"uses {', '.join(walk.unrepeatable)}",
            "compute it from source columns alone",
        )
    kind: Any = result.schema["value"].dataType
    if kind.typeName() in _APPROXIMATE:
        raise GrainProblem(
            f"the value {value.name} is a {kind.typeName()}",
            "0.0 and -0.0 are equal and not the same",
            "cast it to a decimal, an integer or a string",
        )


def check_links(
    spark: SparkSession, target: TargetMapping, schemas: Mapping[str, TableSchema], reaches: Sequence[Reach]
) -> None:
    """Values linked to each other must have one type, or equal ones had different hashes. Raises
    ``GrainProblem``."""
    types: dict[tuple[str, str], tuple[str, str]] = {}
    for table in dict.fromkeys(table for table, _, _ in target.values):
        frame, _ = marked_frame(spark, schemas[table], f"type of {table} {uuid.uuid4()}")
        for value in value_columns(target, table):
            kind = frame.select(value.of(frame).alias("value")).schema["value"].dataType
            types[schemas[table].id.name, value.column] = (value.name, kind.simpleString())
    for reach in reaches:
        for node in reach.nodes[1:]:
            tables = node.schema.id.name, reach.nodes[node.above or 0].schema.id.name
            for pair in zip(
                node.columns, reach.grain if node.above is None else node.above_columns, strict=True
            ):
                (a, kind_a), (b, kind_b) = (types.get(at, ("", "")) for at in zip(tables, pair, strict=True))
                if kind_a != kind_b:
                    raise GrainProblem(
                        f"the values {a} and {b} are linked and have different types",
                        f"{a} is {kind_a}, {b} is {kind_b}",
                        "cast both to one type in values=",
                    )
