"""Helpers for users' unit tests: run one target mapping over a few rows, on a small local Spark, without any server.

from transforms.testing import run
from mapping import mapping

def test_person():
    assert run(mapping, "person", customer=[{"id": 1, "name": " Ada "}]) == [{"person_id": 1, "name": "Ada"}]
"""

from __future__ import annotations

from collections.abc import Mapping as Rows
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from migrator.errors import MappingError
from transforms.analysis.plan import call
from transforms.cause import spark_cause
from transforms.frames import without_empty_pieces
from transforms.on_spark.session import small_session
from transforms.registry import Mapping


def run(
    mapping: Mapping, target: str, /, **tables: Sequence[Rows[str, object]] | pa.Table
) -> list[dict[str, Any]]:
    """The rows a target mapping makes, ordered by its key.

    Args:
        mapping: the mapping under test.
        target: name of the target table.
        tables: rows of every source table of that target, as dicts, all with the same columns. Types
            follow the Python values (int: bigint, naive datetime: timestamp_ntz, aware: timestamp, Decimal:
            exact). Give a ``pyarrow.Table`` where the type matters or there are no rows.

    Raises:
        MappingError: no such target, a source table too many or too few, or the function fails.
    """
    if target not in mapping:
        known = ", ".join(t.name for t in mapping.targets)
        raise MappingError(
            f"the mapping has no target table {target!r}", remedy=f"name one of {known or 'none'}"
        )
    found = mapping[target]
    wrong = sorted(set(found.sources) ^ set(tables))
    if wrong:
        raise MappingError(
            f"target table {target!r} is made from {', '.join(found.sources)}",
            where=found.where(),
            cause=f"given instead: {', '.join(sorted(tables)) or 'nothing'}",
            remedy="give the rows of exactly these source tables",
        )
    spark = small_session()
    frames = {name: _frame(spark, name, rows) for name, rows in tables.items()}
    try:
        rows = call(found, frames).toArrow().to_pylist()
    except PySparkException as error:
        raise MappingError(
            f"the mapping of target table {target!r} fails on these rows",
            where=found.where(),
            cause=spark_cause(error),
            remedy="correct the function, or the rows of the test",
        ) from error
    missing = [name for name in found.key if rows and name not in rows[0]]
    if missing:
        raise MappingError(
            f"target table {target!r} lacks its key columns {', '.join(missing)}",
            where=found.where(),
            remedy="add them to the result",
        )
    return sorted(rows, key=lambda row: tuple((row[name] is not None, row[name]) for name in found.key))


def _frame(spark: SparkSession, name: str, rows: Sequence[Rows[str, object]] | pa.Table) -> DataFrame:
    if isinstance(rows, pa.Table):
        return spark.createDataFrame(
            without_empty_pieces(rows), from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        )
    if not rows:
        raise MappingError(
            f"source table {name!r} has no rows, so its columns are unknown",
            remedy="give an empty pyarrow.Table with a schema",
        )
    if any(row.keys() != rows[0].keys() for row in rows):
        raise MappingError(
            f"rows of source table {name!r} have different columns", remedy="give every row all columns"
        )
    try:
        return _frame(spark, name, pa.Table.from_pylist([dict(row) for row in rows]))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise MappingError(
            f"rows of source table {name!r} mix types in one column",
            cause=str(error),
            remedy="use one Python type a column, or give a pyarrow.Table",
        ) from error
