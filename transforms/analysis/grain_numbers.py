"""The values of a computed grain, as numbers: hashes of what the user's function returns for the rows.

Rows whose values are equal get the same number. Different values may share a number: then more rows are mapped
again than necessary, and the result is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from migrator.model.reach import Reach
from migrator.model.table import TableSchema
from transforms.cause import spark_cause
from transforms.declared_grain import GrainProblem, grain_tables
from transforms.frames import empty_frame
from transforms.registry import TargetMapping

NUMBER = "~number"


def numbered(target: TargetMapping, reach: Reach, frames: Mapping[str, DataFrame]) -> DataFrame:
    """The key columns and the grain's ``NUMBER`` of every row of the grain's table.

    Args:
        target: a target with a computed grain.
        reach: the reach of that grain.
        frames: rows by table name, at least of the grain function's parameters.

    Raises ``MappingError`` when the function can't be called, or gives no columns.
    """
    tables = grain_tables(target)
    parts = {node.role: node for node in reach.nodes}
    joined = frames[tables[0]]
    for node in reach.nodes[1:]:
        if node.role in tables:
            above = reach.nodes[node.above or 0].role
            pairs = zip(node.columns, node.above_columns, strict=True)
            same = [frames[node.role][a] == frames[above][b] for a, b in pairs]
            joined = joined.join(frames[node.role], reduce(lambda a, b: a & b, same), "left")
    grain = target.grain
    assert callable(grain)
    try:
        result = grain(*(frames[name] for name in tables))
        listed = list(result) if isinstance(result, list | tuple) else [result]
        values = [value for value in listed if isinstance(value, Column)]
        if not values or len(values) < len(listed):
            raise TypeError("it gives no list of columns")
        key = [frames[tables[0]][name].alias(name) for name in parts[tables[0]].schema.key]
        return joined.select(*key, F.xxhash64(*values).alias(NUMBER))
    except Exception as error:
        raise MappingError(
            f"the computed grain of target table {target.name!r} fails when called",
            where=target.where(),
            cause=spark_cause(error),
            remedy="return a list of columns made from the function's parameters: [F.trim(actor.first_name)]",
        ) from error


def check_grain(
    spark: SparkSession, target: TargetMapping, reach: Reach, schemas: Mapping[str, TableSchema]
) -> None:
    """Calls a computed grain on empty tables. Raises ``GrainProblem``, ``MappingError``; runs no job."""
    tables = grain_tables(target)
    for node in reach.nodes[1:]:
        if node.role not in tables:
            continue
        above = reach.nodes[node.above or 0]
        if above.role not in tables:
            raise GrainProblem(
                f"the computed grain uses table {node.role}, which hangs on {above.role}",
                "a grain is computed from rows linked many-to-one, step by step",
                f"make {above.role} a parameter of the grain as well",
            )
        if not set(node.schema.key) <= set(node.columns):
            raise GrainProblem(
                f"the computed grain uses table {node.role}, which has many rows for one of {above.role}",
                f"it is linked by {', '.join(node.columns)}, its key is {', '.join(node.schema.key)}",
                "compute the grain from tables linked many-to-one, or make the other table the grain's own",
            )
    plan = numbered(target, reach, {name: empty_frame(spark, schemas[name]) for name in tables})
    if not plan._jdf.queryExecution().analyzed().deterministic():
        raise GrainProblem(
            "the computed grain gives other values each time it runs",
            "",
            "compute it from source columns alone",
        )
