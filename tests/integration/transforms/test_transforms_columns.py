"""The column library against independent oracles: Python's uuid, zoneinfo, datetime, decimal."""

from __future__ import annotations

import datetime as dt
import math
import random
import struct
import sys
import uuid
import zoneinfo
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from migrator.errors import MappingError
from transforms import columns as C
from transforms.cause import spark_cause

pytestmark = pytest.mark.spark

# One Spark job per example, many rows each: the variety is in the rows. Shrinking would run hundreds of jobs.
few = settings(
    max_examples=4,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
SPACE = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
UTC = dt.UTC


def values(
    spark: SparkSession, schema: str, rows: list[tuple[Any, ...]], *columns: Column
) -> list[tuple[Any, ...]]:
    """The columns computed over rows, in the order of the rows."""
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    table = frame.select(*(column.alias(f"v{n}") for n, column in enumerate(columns))).toArrow()
    return [tuple(row.values()) for row in table.to_pylist()]


def failure(spark: SparkSession, schema: str, value: Any, column: Column) -> str:
    """What Spark says of a column that can't be computed. The row is part of the plan: that needs no job."""
    declared = StructType.fromDDL(schema)
    assert isinstance(declared, StructType)
    row = pa.Table.from_pylist([{declared.names[0]: value}], to_arrow_schema(declared))
    frame = spark.createDataFrame(row, declared)
    with pytest.raises(PySparkException) as caught:
        frame.select(column).collect()
    return spark_cause(caught.value)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@few
@given(rows=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), texts), min_size=150, max_size=150))
def test_uuid5_is_pythons_uuid5(spark: SparkSession, rows: list[tuple[int, str]]) -> None:
    rows = [*rows, (1, "Zoë"), (0, ""), (-1, "😀|日本")]
    found = values(
        spark, "i long, t string", rows, C.uuid5(SPACE, "i", F.col("t")), C.uuid5_binary(SPACE, "i", "t")
    )
    expected = [uuid.uuid5(uuid.UUID(SPACE), f"{number}|{text}") for number, text in rows]
    assert found == [(str(each), each.bytes) for each in expected]


def test_uuid5_of_null_is_null_and_needs_a_namespace(spark: SparkSession) -> None:
    assert values(spark, "i long, t string", [(1, None)], C.uuid5(SPACE, "i", "t")) == [(None,)]
    with pytest.raises(MappingError, match="no UUID"):
        C.uuid5("customers", "i")
    with pytest.raises(MappingError, match="no parts"):
        C.uuid5(SPACE)


ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "+05:30",
    "-03:00",
    "UTC",
)


def instant_oracle(naive: dt.datetime, zone: str) -> dt.datetime:
    """Python's zoneinfo with fold=0 has the documented rule."""
    if zone[0] in "+-":
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
        return naive.replace(tzinfo=dt.timezone(offset if zone[0] == "+" else -offset)).astimezone(UTC)
    return naive.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=0).astimezone(UTC)


moments = st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2037, 12, 31))


@few
@given(rows=st.lists(st.tuples(moments, st.sampled_from(ZONES)), min_size=200, max_size=200))
def test_instants_agree_with_zoneinfo(spark: SparkSession, rows: list[tuple[dt.datetime, str]]) -> None:
    found = values(spark, "t timestamp_ntz, z string", rows, C.instant("t", F.col("z")))
    assert [row[0] for row in found] == [instant_oracle(*row) for row in rows]


def test_instants_of_the_days_that_change_the_clock(spark: SparkSession) -> None:
    days = [dt.date(2024, 3, 31), dt.date(2024, 10, 27), dt.date(2024, 3, 10), dt.date(2024, 11, 3)]
    rows = [
        (dt.datetime.combine(day, dt.time(h, m)), zone)
        for day in days
        for h in range(24)
        for m in (0, 30)
        for zone in ZONES
    ]
    found = values(spark, "t timestamp_ntz, z string", rows, C.instant("t", F.col("z")))
    assert [row[0] for row in found] == [instant_oracle(*row) for row in rows]


def test_of_a_time_that_a_clock_shows_twice_the_first_is_meant(spark: SparkSession) -> None:
    """Whatever ``fold`` a Python datetime says. What it says of the second would be another instant."""
    twice = dt.datetime(2024, 11, 3, 1, 30, fold=1)
    [(found,)] = values(spark, "t timestamp_ntz", [(twice,)], C.instant("t", "America/New_York"))
    assert found == instant_oracle(twice, "America/New_York") == dt.datetime(2024, 11, 3, 5, 30, tzinfo=UTC)
    assert twice.replace(tzinfo=zoneinfo.ZoneInfo("America/New_York")).astimezone(UTC) != found


def test_an_instant_with_a_literal_zone(spark: SparkSession) -> None:
    row = (dt.datetime(2024, 3, 31, 2, 30),)
    [(berlin, fixed)] = values(
        spark, "t timestamp_ntz", [row], C.instant("t", "Europe/Berlin"), C.instant("t", "+02:00")
    )
    assert berlin == dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC)
    assert fixed == dt.datetime(2024, 3, 31, 0, 30, tzinfo=UTC)
    with pytest.raises(MappingError, match="unknown time zone"):
        C.instant("t", "Europe/Berln")


@few
@given(
    rows=st.lists(st.tuples(st.dates(), st.integers(0, 24), st.integers(0, 59)), min_size=200, max_size=200)
)
def test_timestamps_from_parts(spark: SparkSession, rows: list[tuple[dt.date, int, int]]) -> None:
    cases = [(d.year, d.month, d.day, h * 100 + (m if h < 24 else 0)) for d, h, m in rows if d < dt.date.max]
    cases += [(2013, 1, 1, 517), (2013, 12, 31, 2400), (2024, 2, 28, 0)]
    schema = "y int, m int, d int, t int"
    found = values(spark, schema, cases, C.from_parts("y", "m", "d", "t"))
    assert [row[0] for row in found] == [
        dt.datetime(y, m, d) + dt.timedelta(hours=t // 100, minutes=t % 100) for y, m, d, t in cases
    ]
    assert values(spark, schema, [(2013, 1, 1, None)], C.from_parts("y", "m", "d", "t")) == [(None,)]


@pytest.mark.parametrize("hhmm", [-1, 60, 1275, 2401, 9999])
def test_a_time_that_does_not_exist_fails(spark: SparkSession, hhmm: int) -> None:
    column = C.from_parts(F.lit(2024), F.lit(2), F.lit(29), "t")
    assert f"value {hhmm} is no time of day" in failure(spark, "t int", hhmm, column)


def test_a_date_that_does_not_exist_fails(spark: SparkSession) -> None:
    assert "29" in failure(spark, "t int", 0, C.from_parts(F.lit(2023), F.lit(2), F.lit(29), "t"))


def test_blanks_and_zero_dates_become_null(spark: SparkSession) -> None:
    rows = [("",), ("   ",), (" a ",), (None,), ("0000-00-00 00:00:00.000",), ("2024-01-02",)]
    found = values(spark, "t string", rows, C.blank_to_null("t"), C.zero_date_to_null("t"))
    assert [row[0] for row in found[:4]] == [None, None, " a ", None]
    assert [row[1] for row in found] == ["", "   ", " a ", None, None, "2024-01-02"]


@few
@given(rows=st.lists(st.datetimes(dt.datetime(1, 1, 1)), min_size=200, max_size=200))
def test_dates_and_datetimes_of_mariadb(spark: SparkSession, rows: list[dt.datetime]) -> None:
    cases: list[tuple[Any, ...]] = [(row.date().isoformat(), row.isoformat(" ")) for row in rows]
    cases += [
        ("0000-00-00", "0000-00-00 00:00:00"),
        (None, None),
        ("9999-12-31", "9999-12-31 23:59:59.999999"),
    ]
    found = values(spark, "d string, t string", cases, C.mysql_date("d"), C.mysql_datetime("t"))
    expected: list[tuple[Any, Any]] = [(row.date(), row) for row in rows]
    expected += [(None, None), (None, None), (dt.date.max, dt.datetime.max)]
    assert found == expected


@pytest.mark.parametrize(
    "text", ["2024-05-00", "2024-00-01", "0000-01-01", "2024-02-30", "", "2024-1-1", "nonsense"]
)
def test_dates_that_are_no_dates_fail(spark: SparkSession, text: str) -> None:
    assert text in failure(spark, "t string", text, C.mysql_date("t"))
    assert text in failure(spark, "t string", f"{text} 10:00:00", C.mysql_datetime("t"))


def test_flags_and_cents(spark: SparkSession) -> None:
    rows = [(0, Decimal("1.10")), (1, Decimal("-92233720368547758.08")), (None, None)]
    found = values(spark, "f tinyint, m decimal(30,4)", rows, C.flag("f"), C.cents("m"))
    assert found == [(False, 110), (True, -(2**63)), (None, None)]
    assert "value 2 is no flag" in failure(spark, "f tinyint", 2, C.flag("f"))
    assert "no whole number of cents" in failure(spark, "m decimal(9,3)", Decimal("0.001"), C.cents("m"))
    assert "OVERFLOW" in failure(spark, "m decimal(30,2)", Decimal("92233720368547758.08"), C.cents("m"))


@few
@given(rows=st.lists(st.decimals(-(10**15), 10**15, places=2), min_size=100, max_size=100))
def test_cents_are_exact(spark: SparkSession, rows: list[Decimal]) -> None:
    found = values(spark, "m decimal(20,4)", [(row,) for row in rows], C.cents("m"))
    assert [row[0] for row in found] == [int(row * 100) for row in rows]


def test_lower_and_slug_change_only_ascii(spark: SparkSession) -> None:
    rows = [("ÀB c&&D ",), ("--İ100% Fun!",), ("Sci-Fi\n",), ("!",), ("",), (None,)]
    found = values(spark, "t string", rows, C.lower_ascii("t"), C.slug("t"))
    assert [row[0] for row in found] == ["Àb c&&d ", "--İ100% fun!", "sci-fi\n", "!", "", None]
    assert [row[1] for row in found] == ["b-c-d", "100-fun", "sci-fi", "", "", None]


def test_points_are_exact(spark: SparkSession) -> None:
    rng = random.Random(7)
    bits = [rng.getrandbits(64) for _ in range(300)]
    numbers = [*(n for n in map(_double, bits) if math.isfinite(n)), 0.0, -0.0, 5e-324, 2.0**-1022, 0.1]
    numbers += [sys.float_info.max, -sys.float_info.max, 2.0**-1022 - 5e-324]
    rows = [(_point(n, numbers[-1 - place]),) for place, n in enumerate(numbers)]
    found = values(spark, "p binary", [*rows, (None,)], C.point_x("p"), C.point_y("p"))
    expected = [(n + 0.0, numbers[-1 - place] + 0.0) for place, n in enumerate(numbers)]
    assert repr(found) == repr([*expected, (None, None)])


@pytest.mark.parametrize(
    "geometry",
    [b"", struct.pack("<IBIdd", 0, 1, 1, math.inf, 0), struct.pack("<IBIdd", 0, 1, 2, 0, 0)],
    ids=["empty", "infinite", "other type"],
)
def test_a_geometry_that_is_no_point_fails(spark: SparkSession, geometry: bytes) -> None:
    assert "is no point" in failure(spark, "p binary", geometry, C.point_x("p"))


def test_ratios_round_exact_halves_away_from_zero(spark: SparkSession) -> None:
    rng = random.Random(5)
    rows: list[tuple[Any, ...]] = [(1, 200), (-1, 200), (1, -200), (3, 0), (0, -7), (None, 1), (1, None)]
    rows += [(rng.randint(-(10**13), 10**13), rng.randint(-500, 500)) for _ in range(200)]
    rows += [(2 * n + 1, 2 * 10**4) for n in range(-20, 20)]
    found = values(spark, "a long, b int", rows, C.ratio("a", "b", 2), C.ratio("a", "b", 4))
    for (a, b), quotients in zip(rows, found, strict=True):
        exact = None if a is None or not b else Decimal(a) / Decimal(b)
        for digits, quotient in zip((2, 4), quotients, strict=True):
            step = Decimal(1).scaleb(-digits)
            assert quotient == (None if exact is None else exact.quantize(step, ROUND_HALF_UP)), (a, b)


def _point(x: float, y: float) -> bytes:
    return struct.pack("<IBIdd", 4326, 1, 1, x, y)


def _double(bits: int) -> float:
    [number] = struct.unpack("<d", bits.to_bytes(8, "little"))
    return float(number)
