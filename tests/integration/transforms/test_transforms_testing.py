"""The helper for users' own tests of their mappings, and rows in memory."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from migrator.model.table import Column, TableId, TableSchema
from transforms import Mapping
from transforms.on_spark.pipeline import arrow_frame
from transforms.testing import run

pytestmark = pytest.mark.spark


def demo() -> Mapping:
    mapping = Mapping()

    @mapping.target("person", key="person_id")
    def person(customer: DataFrame) -> DataFrame:
        return customer.filter("active").select(
            F.col("id").alias("person_id"), F.trim("name").alias("name"), "seen"
        )

    return mapping


def test_users_run_a_mapping_over_dicts(spark: SparkSession) -> None:
    seen = dt.datetime(1970, 1, 2, 3)
    rows = [
        {"id": 2, "name": " Ada ", "active": True, "seen": seen},
        {"id": 1, "name": None, "active": True, "seen": None},
        {"id": 3, "name": "Bob", "active": False, "seen": seen},
    ]
    assert run(demo(), "person", customer=rows) == [
        {"person_id": 1, "name": None, "seen": None},
        {"person_id": 2, "name": "Ada", "seen": seen},
    ]
    empty = pa.table(rows_schema_only()).slice(0, 0)
    assert run(demo(), "person", customer=empty) == []


def rows_schema_only() -> dict[str, list[Any]]:
    return {"id": [1], "name": [""], "active": [True], "seen": [dt.datetime(2000, 1, 1)]}


@pytest.mark.parametrize(
    ("target", "tables", "text"),
    [
        ("persn", {"customer": [{"id": 1}]}, "no target table 'persn'"),
        ("person", {}, "made from customer"),
        ("person", {"customer": [{"id": 1}], "other": [{"id": 1}]}, "made from customer"),
        ("person", {"customer": []}, "no rows"),
        ("person", {"customer": [{"id": 1}, {"no": 1}]}, "different columns"),
        ("person", {"customer": [{"id": 1}, {"id": "x"}]}, "mix types"),
        ("person", {"customer": [{"id": 1}]}, "unknown column 'active'"),
    ],
)
def test_mistakes_in_a_users_test_are_explained(
    spark: SparkSession, target: str, tables: dict[str, Any], text: str
) -> None:
    with pytest.raises(MappingError, match=text):
        run(demo(), target, **tables)


def test_rows_behind_an_empty_piece_are_not_lost(spark: SparkSession) -> None:
    schema = TableSchema(TableId("public", "t"), (Column("id", "int64", False, "bigint"),), ("id",))
    one = pa.table({"id": pa.array([1], pa.int64())})
    pieces = pa.concat_tables([one, one.slice(0, 0), one])
    assert pieces["id"].num_chunks == 3, "nothing empty lies between them"
    assert arrow_frame(spark, pieces, schema).toArrow().num_rows == 2
