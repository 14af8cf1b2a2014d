"""Grains as the run names them in the ledger, left out of the source by the judge: of each type, and by values."""

from __future__ import annotations

from collections.abc import Mapping as Tables
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.columnar.grains import Grains
from migrator.columnar.types import arrow_schema
from migrator.model.progress import BadRow, GrainName
from migrator.model.table import Column, TableId, TableSchema
from transforms.analysis.grain_values import value_columns, with_hashes
from transforms.analysis.plan import depends_on
from transforms.frames import arrow_frame
from transforms.registry import Mapping, TargetMapping
from verify.tables.compare import bad_grains
from verify.tables.compare.bad_grains import without_grains

pytestmark = [pytest.mark.integration, pytest.mark.spark]
KINDS: dict[str, list[Any]] = {
    "bool": [True, False],
    "int64": [0, -(2**63)],
    "decimal(20,0)": [Decimal("12345678901234567890"), Decimal("-5")],
    "decimal(38,10)": [Decimal("1.5"), Decimal("0.0000000001"), Decimal("100")],
    "string": ["", "a", "A", "a ", "ä", "\\N", "\\\\N", "\\0", "\0", "\\\0", "1", "NULL"],
    "binary": [b"", b"\0", b"\\", b"00", b"\\x00"],
    "date": [date(2020, 1, 1), date(1, 1, 1), date(9999, 12, 31), 2**31 - 1, -(2**31)],
    "timestamp": [datetime(2020, 1, 1, 0, 0, 0, 123456), datetime(1, 1, 1), 2**63 - 1, -(2**63)],
    "timestamptz": [datetime(2020, 1, 1, 5, tzinfo=UTC), 2**63 - 1, -(2**63)],
    "float64": [0.0, 0.1, 1e20, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan")],
    "float32": [0.1, -3.4e38, float("nan")],
}


def schema(name: str, **columns: str) -> TableSchema:
    found = tuple(Column(column, kind, True, kind) for column, kind in columns.items())
    return TableSchema(TableId("old", name), found, ("id",))


def rows_of(shape: TableSchema, *columns: list[Any]) -> pa.Table:
    wanted = arrow_schema(shape)
    return pa.table(
        [pa.array(one, kind) for one, kind in zip(columns, wanted.types, strict=True)], schema=wanted
    )


def aside(grains: list[GrainName]) -> list[BadRow]:
    return [BadRow("count", columns, key, "p", 1, "r", "x", grain=True) for columns, key in grains]


def only(mapping: Mapping) -> TargetMapping:
    (target,) = mapping
    return target


def left(
    spark: SparkSession,
    target: TargetMapping,
    tables: Tables[str, pa.Table],
    shapes: Tables[str, TableSchema],
    bad: Any,
) -> dict[str, set[int]]:
    """The ids of the rows that the judge maps."""
    frames = {name: arrow_frame(spark, rows, shapes[name]) for name, rows in tables.items()}
    found = without_grains(spark, target, frames, shapes, bad, None)
    assert all(found[name].columns == frames[name].columns for name in frames)
    return {name: {row["id"] for row in rows.select("id").collect()} for name, rows in found.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_exactly_the_rows_of_the_grains_are_left_out(spark: SparkSession, kind: str) -> None:
    mapping = Mapping()

    @mapping.target("count", key="k", grain="item.k")
    def count(item: DataFrame) -> DataFrame:
        return item.groupBy("k").count()

    shape = schema("item", id="int64", k=kind)
    values = [*KINDS[kind], None]
    rows = rows_of(shape, list(range(2 * len(values))), [value for value in values for _ in range(2)])
    grains = Grains(depends_on(spark, only(mapping), {"item": shape}, ())).of({"item": rows})
    assert len(grains) == len(values), "two values have one text"
    for half in (0, 1):
        bad = [number for number in range(len(values)) if number % 2 == half]
        found = left(spark, only(mapping), {"item": rows}, {"item": shape}, aside([grains[n] for n in bad]))
        assert found["item"] == {n for n in range(rows.num_rows) if n // 2 not in bad}


def by_values() -> TargetMapping:
    mapping = Mapping()

    @mapping.target(
        "count", key="id", grain="item.folded", links=["item.folded = kind.folded"],
        values={"item.folded": lambda item: F.lower(item.code), "kind.folded": lambda kind: F.lower(kind.code)},
    )  # fmt: skip
    def count(item: DataFrame, kind: DataFrame) -> DataFrame:
        return item.join(kind, F.lower(item.code) == F.lower(kind.code)).groupBy(F.lower(item.code)).count()

    return only(mapping)


def test_grains_and_links_of_computed_values_are_left_out(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = by_values()
    shapes = {name: schema(name, id="int64", code="string") for name in ("item", "kind")}
    tables = {name: rows_of(shapes[name], [1, 2, 3, 4], ["a", "A", "b", "C"]) for name in shapes}
    mirrored = {
        name: with_hashes(spark, shapes[name], value_columns(target, name), rows)
        for name, rows in tables.items()
    }
    grains = Grains(depends_on(spark, target, shapes, ())).of(mirrored)
    assert len(grains) == 3
    found = left(spark, target, tables, shapes, aside(grains[:1]))
    assert found == {"item": {3, 4}, "kind": {3, 4}}
    monkeypatch.setattr(bad_grains, "with_values", lambda target, name, rows: rows)
    with pytest.raises(Exception, match="folded"):
        left(spark, target, tables, shapes, aside(grains[:1]))
