"""Mappings run over rows by real Spark: exact values, casts, deltas, failing rows, the users' test helper."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from tests.integration.transforms.test_transforms_plan import ROW_WISE, SCHEMAS, plan_of, target_column
from transforms import Mapping, load_mapping
from transforms.analysis.plan import MappingPlan, analyse
from transforms.frames import constants
from transforms.on_spark.pipeline import (
    SIDE,
    FailingRow,
    arrow_frame,
    failing_row,
    map_delta,
    map_rows,
    parquet_frame,
    spark_cause,
    spark_schema,
)

pytestmark = pytest.mark.spark

DAYS = (-(2**31), -719_162, -141_428, 0, 2_932_896, 2**31 - 1, None)
MICROS = (
    -(2**63),
    -62_135_596_800_000_000,
    -12_219_292_800_000_001,
    0,
    253_402_300_799_999_999,
    2**63 - 1,
    None,
)
EXTREMES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "bool": (pa.bool_(), (True, False, None)),
    "int8": (pa.int8(), (-128, 127, None)),
    "int16": (pa.int16(), (-32768, 32767, None)),
    "int32": (pa.int32(), (-(2**31), 2**31 - 1, None)),
    "int64": (pa.int64(), (-(2**63), 2**63 - 1, 9007199254740993)),
    "float32": (pa.float32(), (1.5, -0.0, math.inf)),
    "float64": (pa.float64(), (0.1, 5e-324, -math.inf)),
    "decimal(38,0)": (pa.decimal128(38, 0), (Decimal(10**38 - 1), Decimal(-(10**38) + 1), None)),
    "decimal(38,38)": (pa.decimal128(38, 38), (Decimal("0." + "9" * 38), Decimal("-0." + "1" * 38), None)),
    "decimal(9,2)": (pa.decimal128(9, 2), (Decimal("1.10"), Decimal("-1234567.89"), None)),
    "string": (pa.string(), ("", "  ä𝄞\t\n'\"\\ ", None)),
    "binary": (pa.binary(), (b"", b"\x00\xff\x80", None)),
    "date": (pa.date32(), DAYS),
    "timestamp": (pa.timestamp("us"), MICROS),
    "timestamptz": (pa.timestamp("us", "UTC"), MICROS),
}
ROWS = 7


def extreme_rows() -> tuple[pa.Table, TableSchema]:
    columns, arrays = [], []
    for number, (logical, (arrow, values)) in enumerate(EXTREMES.items()):
        padded = [values[row % len(values)] for row in range(ROWS)]
        columns.append(Column(f"c{number} {logical}", logical, True, logical))
        if logical in {"date", "timestamp", "timestamptz"}:
            raw = pa.array(padded, pa.int32() if logical == "date" else pa.int64())
            arrays.append(raw.view(arrow))
        else:
            arrays.append(pa.array(padded, arrow))
    schema = TableSchema(TableId("public", "wide"), tuple(columns), (columns[4].name,))
    return pa.table(arrays, names=[column.name for column in columns]), schema


def identity_plan(spark: SparkSession, schema: TableSchema) -> MappingPlan:
    mapping = Mapping()
    mapping.target("copy", key=schema.key)(lambda wide: wide.select(*(f"`{n}`" for n in wide.columns)))
    columns = [
        TargetColumn(field.name, field.dataType.simpleString(), "", True, False, False)
        for field in spark_schema(schema).fields
    ]
    return analyse(spark, mapping["copy"], {"wide": schema}, columns)


def test_extreme_values_survive_arrow_and_parquet(spark: SparkSession, tmp_path: Path) -> None:
    rows, schema = extreme_rows()
    plan = identity_plan(spark, schema)
    marked = rows.append_column(
        "__sign", pa.array([1] * ROWS, pa.int8())
    )  # not in the schema: must be dropped
    file = tmp_path / "a [b] {c} 100%" / "log.parquet"
    file.parent.mkdir()
    pq.write_table(marked, file)
    for frame in (
        arrow_frame(spark, marked, schema),
        parquet_frame(spark, [file], schema),
    ):
        back = map_rows(spark, plan, {"wide": frame}).toArrow()
        assert back.column_names == rows.column_names
        for name in rows.column_names:
            assert (
                back.column(name)
                .combine_chunks()
                .cast(rows.column(name).type)
                .equals(rows.column(name).combine_chunks())
            ), name


def test_no_frames_and_no_files_are_no_rows(spark: SparkSession) -> None:
    rows, schema = extreme_rows()
    plan = identity_plan(spark, schema)
    assert map_rows(spark, plan, {}).toArrow().num_rows == 0
    assert parquet_frame(spark, [], schema).columns == rows.column_names


def test_rows_that_lack_a_column_or_belong_to_another_table_are_refused(spark: SparkSession) -> None:
    rows, schema = extreme_rows()
    with pytest.raises(MappingError, match="lack columns"):
        arrow_frame(spark, rows.drop_columns([rows.column_names[0]]), schema)
    with pytest.raises(MappingError, match="takes no rows of other"):
        map_rows(spark, identity_plan(spark, schema), {"other": spark.range(1)})


FLIGHTS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "dest": ["SEA", "BOS", None, "SEA", "sea,bos", ""],
        "delay": pa.array([1, None, 3, -4, 5, 5], pa.int32()),
        "at": pa.array([None] * 6, pa.timestamp("us")),
        "price": pa.array([Decimal("1.2500")] * 6, pa.decimal128(12, 4)),
    }
)
WEATHER = pa.table({"id": pa.array([7, 8], pa.int64()), "temp": [1.0, 2.0], "dest": ["SEA", None]})


@pytest.mark.slow
def test_what_is_called_row_wise_distributes_over_bags(spark: SparkSession) -> None:
    """The claim itself, on data, in one job: f(A + B) = f(A) + f(B) for every function the plan walk accepts."""
    data = {"flights": FLIGHTS, "weather": WEATHER}
    made = []
    for name, function in ROW_WISE.items():
        plan = plan_of(spark, function)
        for part, (start, stop) in enumerate(((0, 6), (0, 1), (1, 6))):
            frames = {
                table: arrow_frame(spark, data[table].slice(start, stop - start), schema)
                for table, schema in plan.schemas.items()
            }
            row = F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row")
            made.append(map_rows(spark, plan, frames).select(F.lit(name).alias("name"), F.lit(part), row))
    found: defaultdict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for name, part, text in reduce(DataFrame.unionAll, made).collect():
        found[name, part][text] += 1
    for name in ROW_WISE:
        assert found[name, 0].total() > 0, name
        assert found[name, 0] == found[name, 1] + found[name, 2], name


def flights_plan(
    spark: SparkSession, function: Callable[..., Any], *columns: TargetColumn, key: str = "id"
) -> MappingPlan:
    mapping = Mapping()
    mapping.target("out", key=key)(function)
    return analyse(spark, mapping["out"], SCHEMAS, columns)


def test_output_has_the_targets_columns_order_and_types(spark: SparkSession) -> None:
    plan = flights_plan(
        spark,
        lambda flights: flights.select(
            "price", F.col("delay").alias("odd `name`"), F.lit(None).alias("x"), "id"
        ),
        target_column("id", "string"),
        target_column("x", "date"),
        target_column("skipped", "int"),
        target_column("odd `name`", "bigint"),
        target_column("price", "decimal(6,2)"),
    )
    out = map_rows(spark, plan, {"flights": arrow_frame(spark, FLIGHTS, SCHEMAS["flights"])}).toArrow()
    assert out.schema.names == ["id", "x", "odd `name`", "price"]
    assert [str(kind) for kind in out.schema.types] == ["string", "date32[day]", "int64", "decimal128(6, 2)"]
    assert out.to_pylist()[0] == {"id": "0", "x": None, "odd `name`": 1, "price": Decimal("1.25")}


@pytest.mark.parametrize(
    ("expression", "type_", "cause"),
    [
        ("id + 128", "tinyint", "column v: 128 is no exact tinyint, in the row with id=0"),
        ("price", "decimal(12,1)", "column v: 1.2500 is no exact decimal(12,1)"),
        ("price", "int", "column v: 1.2500 is no exact int"),
        ("1.5d", "bigint", "column v: 1.5 is no exact bigint"),
        ("price * 1000", "decimal(4,1)", "is no exact decimal(4,1), in the row with id=0"),
        ("9007199254740993", "double", "column v: 9007199254740993 is no exact double"),
        ("id / 0", "double", "DIVIDE_BY_ZERO"),
    ],
    ids=["overflow", "digits", "fraction", "double", "precision", "int to double", "users error"],
)
def test_values_that_do_not_fit_fail_the_job_and_are_named(
    spark: SparkSession, expression: str, type_: str, cause: str
) -> None:
    plan = flights_plan(
        spark,
        lambda flights: flights.select("id", F.expr(expression).alias("v")),
        target_column("id", "bigint"),
        target_column("v", type_),
    )
    frame = arrow_frame(spark, FLIGHTS, SCHEMAS["flights"])
    with pytest.raises(PySparkException) as failure:
        map_rows(spark, plan, {"flights": frame}).toArrow()
    assert cause in spark_cause(failure.value)
    assert "\n" not in spark_cause(failure.value)
    assert "at org.apache" not in spark_cause(failure.value)


def test_a_delta_carries_both_sides_in_one_frame(spark: SparkSession) -> None:
    plan = flights_plan(
        spark,
        lambda flights: flights.filter("delay > 0").select("id", "dest"),
        target_column("id", "bigint"),
        target_column("dest", "string"),
    )
    schema = SCHEMAS["flights"]
    before = {"flights": arrow_frame(spark, FLIGHTS.slice(0, 3), schema)}
    after = {"flights": arrow_frame(spark, FLIGHTS.slice(3, 2), schema)}
    out = map_delta(spark, plan, before, after).toArrow()
    assert out.schema.field(SIDE).type == pa.int16()
    assert sorted(tuple(row.values()) for row in out.to_pylist()) == [
        (0, 0, None),  # of what vanishes only the key is needed
        (0, 2, None),
        (1, 4, "sea,bos"),
    ]
    only_after = map_delta(spark, plan, {}, after).toArrow().to_pylist()
    assert [row[SIDE] for row in only_after] == [1]


def test_what_vanishes_may_hold_values_that_no_longer_fit(spark: SparkSession) -> None:
    """The correction of a row on which the mapping failed goes through: only its key is computed from before."""
    plan = flights_plan(
        spark,
        lambda flights: flights.select(
            "id", F.when(F.col("id") == 0, F.raise_error("bad")).otherwise("x").alias("dest")
        ),
        target_column("id", "bigint"),
        target_column("dest", "string"),
    )
    bad = {"flights": arrow_frame(spark, FLIGHTS.slice(0, 1), SCHEMAS["flights"])}
    assert map_delta(spark, plan, bad, {}).toArrow()["id"].to_pylist() == [0]
    with pytest.raises(PySparkException, match="bad"):
        map_delta(spark, plan, {}, bad).toArrow()


def test_row_wise_jobs_have_no_shuffle(spark: SparkSession) -> None:
    plan = flights_plan(spark, lambda flights: flights.select("id"), target_column("id", "bigint"))
    frames = {"flights": arrow_frame(spark, FLIGHTS, SCHEMAS["flights"])}
    physical = map_delta(spark, plan, frames, frames)._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in physical


def test_constants_are_broadcast_so_that_joins_have_no_shuffle_either(spark: SparkSession) -> None:
    def function(flights: DataFrame) -> DataFrame:
        names = constants(
            spark, "dest string, name string, rate decimal(3,1)", [("SEA", "Seattle", Decimal("1.5"))]
        )
        return flights.join(names, "dest", "left").select("id", "name", "rate")

    plan = flights_plan(
        spark,
        function,
        target_column("id", "bigint"),
        target_column("name", "string"),
        target_column("rate", "decimal(3,1)"),
    )
    frames = {"flights": arrow_frame(spark, FLIGHTS, SCHEMAS["flights"])}
    result = map_rows(spark, plan, frames)
    assert "hashpartitioning" not in result._jdf.queryExecution().executedPlan().toString()
    assert result.toArrow().to_pylist()[0] == {"id": 0, "name": "Seattle", "rate": Decimal("1.5")}


@pytest.mark.parametrize(
    ("schema", "rows"),
    [("a int", [("x",)]), ("a int", [(1, 2)]), ("a int, b int", [(1, 2), (1,)]), ("int", [])],
)
def test_constants_that_do_not_fit_are_refused(spark: SparkSession, schema: str, rows: list[Any]) -> None:
    with pytest.raises(MappingError):
        constants(spark, schema, rows)


@pytest.mark.parametrize("bad", [0, 617])
def test_the_failing_row_is_found_with_its_cause(spark: SparkSession, bad: int) -> None:
    numbers = [1] * 1000
    numbers[bad] = 2**31 - 1
    rows = pa.table({"id": pa.array(range(1000), pa.int64()), "delay": pa.array(numbers, pa.int32())})
    rows = rows.append_column("dest", pa.nulls(1000, pa.string()))
    rows = rows.append_column("at", pa.nulls(1000, pa.timestamp("us")))
    rows = rows.append_column("price", pa.nulls(1000, pa.decimal128(12, 4)))
    plan = flights_plan(
        spark,
        lambda flights: flights.select("id", (F.col("delay") + F.lit(1)).alias("n")),
        target_column("id", "bigint"),
        target_column("n", "int"),
    )
    found = failing_row(spark, plan, "flights", rows)
    assert found is not None
    assert found.index == bad
    assert "ARITHMETIC_OVERFLOW" in found.cause
    healthy = rows.slice(0, bad) if bad else rows.slice(1)
    assert failing_row(spark, plan, "flights", healthy) is None


USERS_FILE = """
import helpers_of_mapping
from pyspark.sql import functions as F
from transforms import Mapping

mapping = Mapping()

@mapping.target("out", key="id")
def out(flights):
    return flights.select("id", F.udf(helpers_of_mapping.checked, "string")("dest").alias("dest"))
"""
USERS_HELPER = """
LIMIT = 3

def checked(text):
    if text and len(text) > LIMIT:
        raise ValueError(f"too long: {text}")
    return text
"""


def test_python_functions_beside_the_mapping_reach_workers_and_their_errors_come_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "mapping.py").write_text(USERS_FILE)
    (tmp_path / "helpers_of_mapping.py").write_text(USERS_HELPER)
    mapping = load_mapping(tmp_path / "mapping.py")
    columns = [target_column("id", "bigint"), target_column("dest", "string")]
    plan = analyse(spark, mapping["out"], SCHEMAS, columns)
    healthy = {"flights": arrow_frame(spark, FLIGHTS.slice(0, 4), SCHEMAS["flights"])}
    assert map_rows(spark, plan, healthy).toArrow().column("dest").to_pylist() == ["SEA", "BOS", None, "SEA"]
    found = failing_row(spark, plan, "flights", FLIGHTS)
    assert found == FailingRow(4, "ValueError: too long: sea,bos")


def test_a_dying_python_worker_has_a_short_cause(spark: SparkSession) -> None:
    frame = spark.range(1).select(F.udf(lambda _: os._exit(3), "int")("id"))
    with pytest.raises((PySparkException, Py4JError)) as failure:
        frame.collect()
    cause = spark_cause(failure.value)
    assert "Python worker exited unexpectedly" in cause
    assert "at org.apache" not in cause
