"""Negative controls: judges that are broken on purpose must be caught by the checks that the real one passes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from verify.readers.snapshot import TargetColumnText
from verify.tables.compare.compare import (
    DIFFERENT,
    EQUAL,
    EXTRA,
    MISSING,
    STATUS,
    Comparison,
    Shape,
    compare,
)
from verify.tables.compare.normalise import mapped_text, target_text

pytestmark = pytest.mark.spark

SHAPE = Shape(("k", "big", "exact", "a", "b", "seen"), ("k",))
COLUMNS = [
    TargetColumnText(name, base, base, False)
    for name, base in zip(
        SHAPE.columns, ("int8", "int8", "numeric", "text", "text", "timestamp"), strict=True
    )
]
NOON = datetime(2024, 1, 1, 12)
NOON_US = "1704110400000000"
DIGITS = "12345678901234567890123456789012.123456"
PLANTED: dict[str, tuple[tuple[object, ...], tuple[str | None, ...]]] = {
    "equal": ((1, 1, Decimal("1.500000"), "x", None, NOON), ("1", "1", "1.5", "x", None, NOON_US)),
    "2^53+1": ((2, 2**53 + 1, None, None, None, None), ("2", str(2**53), None, None, None, None)),
    "38 digits": ((3, 1, Decimal(DIGITS), None, None, None), ("3", "1", DIGITS[:-1] + "7", None, None, None)),
    "null or empty": ((4, 1, None, "", None, None), ("4", "1", None, None, None, None)),
    "null moved": ((5, 1, None, "x", None, None), ("5", "1", None, None, "x", None)),
    "microsecond": ((6, 1, None, None, None, NOON), ("6", "1", None, None, None, NOON_US[:-1] + "1")),
    "last column": ((7, 1, None, None, "x", None), ("7", "1", None, None, "y", None)),
}
MISSING_KEY, EXTRA_KEY = 8, 9

Judge = Callable[[DataFrame, DataFrame, Path], Comparison]


def real(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    mine, theirs = canonical(mapped, mapped_text(mapped, COLUMNS)), canonical(target, target_text(COLUMNS))
    return compare(mine, theirs, SHAPE, directory)


def canonical(rows: DataFrame, texts: list[Column]) -> DataFrame:
    return rows.select(*[text.alias(name) for text, name in zip(texts, SHAPE.columns, strict=True)])


def compares_nothing(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    return real(mapped.limit(0), target.limit(0), directory)


def ignores_a_column(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    return real(mapped.withColumn("b", F.lit("")), target.withColumn("b", F.lit("")), directory)


def reads_one_side_twice(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    mine = canonical(mapped, mapped_text(mapped, COLUMNS))
    return compare(mine, mine, SHAPE, directory)


def drops_deletes(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    return real(mapped, target.join(mapped.select(F.col("k").cast("string")), "k", "left_semi"), directory)


def casts_to_double(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    def lossy(rows: DataFrame) -> DataFrame:
        for name in ("big", "exact"):
            rows = rows.withColumn(name, F.col(name).cast("double").cast("string"))
        return rows

    return compare(
        lossy(canonical(mapped, mapped_text(mapped, COLUMNS))),
        lossy(canonical(target, target_text(COLUMNS))),
        SHAPE,
        directory,
    )


def treats_null_as_empty(mapped: DataFrame, target: DataFrame, directory: Path) -> Comparison:
    return real(mapped.fillna("", ["a", "b"]), target.fillna("", ["a", "b"]), directory)


def missed(judge: Judge, spark: SparkSession, directory: Path) -> set[str]:
    """What a judge does not see of the planted differences; ``count`` if it doesn't account for every key."""
    left = [row for row, _ in PLANTED.values()] + [(MISSING_KEY, 1, None, None, None, None)]
    right = [row for _, row in PLANTED.values()] + [(str(EXTRA_KEY), "1", None, None, None, None)]
    mapped = spark.createDataFrame(
        left, "k bigint, big bigint, exact decimal(38,6), a string, b string, seen timestamp_ntz"
    )
    target = spark.createDataFrame(right, ", ".join(f"{name} string" for name in SHAPE.columns))
    found = judge(mapped, target, directory)
    rows = found.differing.select("__key_0", STATUS).collect() if found.differing is not None else []
    statuses = {row["__key_0"]: row[STATUS] for row in rows}
    expected = {name: (str(row[0]), DIFFERENT) for name, (row, _) in PLANTED.items() if name != "equal"} | {
        "missing row": (str(MISSING_KEY), MISSING),
        "extra row": (str(EXTRA_KEY), EXTRA),
    }
    unseen = {name for name, (key, status) in expected.items() if statuses.get(key) != status}
    accounted = sum(found.statuses.values()) == len(PLANTED) + 2 and found.statuses.get(EQUAL) == 1
    return unseen | (set() if accounted else {"count"}) | ({"false alarm"} if "1" in statuses else set())


def test_the_real_judge_sees_everything(spark: SparkSession, tmp_path: Path) -> None:
    assert missed(real, spark, tmp_path) == set()


@pytest.mark.parametrize(
    ("broken", "seen_by"),
    [
        (compares_nothing, {"count", "2^53+1", "missing row"}),
        (ignores_a_column, {"last column", "count"}),
        (reads_one_side_twice, {"2^53+1", "extra row", "count"}),
        (drops_deletes, {"extra row", "count"}),
        (casts_to_double, {"2^53+1", "38 digits", "count"}),
        (treats_null_as_empty, {"null or empty", "count"}),
    ],
)
def test_a_broken_judge_is_caught(
    broken: Judge, seen_by: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    assert seen_by <= missed(broken, spark, tmp_path)


def test_a_hash_without_null_mask_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "verify.tables.compare.compare.row_hashes",
        lambda columns, salt: F.xxhash64(F.lit(salt), *[F.col(c) for c in columns]),
    )
    assert {"null moved", "count"} <= missed(real, spark, tmp_path)
