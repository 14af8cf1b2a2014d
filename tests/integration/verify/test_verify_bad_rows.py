"""Keys that the ledger names as set aside are told from the missing ones, whatever the keys are of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from migrator.model.progress import UNMAPPED, BadRow
from transforms.registry import TargetMapping
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare import bad_keys
from verify.tables.compare.bad_keys import without_unmapped
from verify.tables.compare.compare import MISSING, STATUS, Shape, key_names
from verify.tables.compare.normalise import mapped_text
from verify.tables.rounds.progress import TableProgress

pytestmark = pytest.mark.spark

KEYS = [
    ("date", "18750", "2021-05-03"),
    ("timestamp", "1614852003000003", "2021-03-04 10:00:03.000003"),
    ("timestamptz", "1614852003000003", "2021-03-04 10:00:03.000003Z"),
    ("numeric", "3.5", "3.500000"),
    ("float8", "3.5", "3.5"),
    ("bytea", "4441", "4441"),
    ("bool", "true", "true"),
    ("text", "k, 3) ", "k, 3) "),
    ("uuid", "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000A"),
]
"""Types of the target, a value's canonical text, and the text of it in the ledger."""


@pytest.mark.parametrize(("base", "canonical", "named"), KEYS)
def test_a_missing_key_that_is_set_aside_is_counted_as_such(
    spark: SparkSession, base: str, canonical: str, named: str
) -> None:
    def no_longer(text: object) -> object:
        raise AssertionError(f"the server would read {text} as another value")

    columns = [TargetColumnText("k", base, base, False), TargetColumnText("n", "int4", "int4", False)]
    if base in ("bytea", "bool"):
        columns[0] = TargetColumnText("k", base, base, False, printed=no_longer)  # type: ignore[arg-type]
    shape = Shape(("k", "n"), ("k",))
    table = TableProgress(TargetMapping.__new__(TargetMapping), columns, shape)
    found = {key_names(shape)[0]: [canonical, "other"], STATUS: [MISSING, MISSING]}
    table.settled = [spark.createDataFrame(pa.table(found))]
    table.bad_rows = (BadRow("t", ("k",), (named,), "p", 1, "r", "x"),)
    assert table.missing_bad_rows() == 1


def left_of(spark: SparkSession, folder: Path, base: str, text: str) -> DataFrame:
    """Two rows but the one that is set aside, which fails; their key is computed."""

    def made(number: int) -> str:
        return f"00000000-0000-0000-00aB-{number:012d}"

    spark.udf.register("made", made, T.StringType())
    parquet.write_table(pa.table({"k": [1, 2], "v": ["none", "7"]}), folder / "rows.parquet")
    frame = spark.read.parquet(str(folder)).selectExpr(f"{text} k", "int(v) v")
    columns = [TargetColumnText("k", base, base, False), TargetColumnText("v", "int4", "int4", False)]
    mapped = frame.select(*(one.alias(n) for n, one in zip("kv", mapped_text(frame, columns), strict=True)))
    aside = [BadRow("t", ("k",), (made(1),), "p", 1, f"{UNMAPPED}so", "x")]
    return without_unmapped(spark, mapped, aside, ("k",), columns)


SHORT = "format_string('00000000-0000-0000-00aB-%012d', k)"


def test_without_the_setting_such_a_key_is_looked_at_too_late(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    monkeypatch.setattr(bad_keys, "_FILTER_ABOVE", "spark.migrator.none")
    spark.conf.set("spark.sql.optimizer.avoidDoubleFilterEval", "true")
    with pytest.raises(PySparkException, match="none"):
        left_of(spark, tmp_path, "uuid", SHORT).collect()


@pytest.mark.parametrize("base", ["uuid", "text"])
@pytest.mark.parametrize("text", [SHORT, "made(k)"])
def test_keys_that_take_long_to_compute_are_looked_at_first_too(
    spark: SparkSession, tmp_path: Path, base: str, text: str
) -> None:
    """Spark 4 leaves a filter of patterns or functions above what it would compute twice."""
    assert [row["v"] for row in left_of(spark, tmp_path, base, text).collect()] == ["7"]


@pytest.mark.parametrize("key", [("k",), ("k", "n")])
def test_rows_whose_mapping_fails_are_left_out_by_their_keys(
    spark: SparkSession, key: tuple[str, ...], tmp_path: Path
) -> None:
    """Two keys of two columns may read the same in a row: ("1", "12") and ("11", "2")."""
    columns = [TargetColumnText(name, "int4", "int4", False) for name in ("k", "n", "v")]
    rows = pa.table({"k": [1, 11, 2, 3], "n": [12, 2, 2, 3], "v": ["none", "7", "8", "none"]})
    parquet.write_table(
        rows, tmp_path / "rows.parquet"
    )  # Spark computes rows in memory before it moves a filter
    stored = spark.read.parquet(str(tmp_path))
    mapped = stored.selectExpr("string(k) k", "string(n) n", "string(int(v)) v")
    values = {"k": ("1", "3"), "n": ("12", "3")}
    aside = [
        BadRow("t", key, tuple(values[name][i] for name in key), "p", 1, f"{UNMAPPED}so", "x") for i in (0, 1)
    ]
    left = without_unmapped(spark, mapped, aside, key, columns).orderBy("k")
    assert [row["v"] for row in left.collect()] == ["7", "8"]
    nowhere = stored.selectExpr("string(k) k", "nullif(string(n), '2') n", "'1' v")
    assert without_unmapped(spark, nowhere, aside, key, columns).where("n IS NULL").count() == 2
    refused = [replace(one, reason="too long") for one in aside]
    with pytest.raises(PySparkException, match="none"):
        without_unmapped(spark, mapped, refused, key, columns).collect()
