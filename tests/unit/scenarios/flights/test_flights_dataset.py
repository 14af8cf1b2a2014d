"""The demo's old rows: complete, keyed, and the same text for both engines."""

from __future__ import annotations

import pandas as pd
import pytest

from scenarios.flights.dataset import TABLES, load_text, old_rows
from scenarios.flights.writers import FLIGHT_COLUMNS, FLIGHT_KEY, WEATHER_COLUMNS, WEATHER_KEY

KEYS = {
    "airlines": ("carrier",),
    "airports": ("faa",),
    "planes": ("tailnum",),
    "flights": FLIGHT_KEY,
    "weather": WEATHER_KEY,
}
ROWS = {"airlines": 16, "airports": 1458, "planes": 3322, "flights": 336_776, "weather": 26_115}


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return {table: old_rows(table) for table in TABLES}


def test_every_row_is_there_once(tables: dict[str, pd.DataFrame]) -> None:
    assert {table: len(rows) for table, rows in tables.items()} == ROWS
    for table, rows in tables.items():
        key = list(KEYS[table])
        assert not rows.duplicated(key).any(), table
        assert not rows[key].isna().any().any(), table


def test_the_natural_keys_are_as_small_as_they_can_be(tables: dict[str, pd.DataFrame]) -> None:
    assert tables["flights"].duplicated([name for name in FLIGHT_KEY if name != "origin"]).any()
    assert tables["weather"].duplicated([name for name in WEATHER_KEY if name != "isdst"]).any()


def test_columns_are_those_the_writers_use(tables: dict[str, pd.DataFrame]) -> None:
    assert tuple(tables["flights"].columns) == FLIGHT_COLUMNS
    assert tuple(tables["weather"].columns) == WEATHER_COLUMNS


def test_missing_values_are_the_old_system_s_codes(tables: dict[str, pd.DataFrame]) -> None:
    assert (tables["flights"]["tailnum"] == "").sum() == 2512
    assert tables["flights"]["dep_time"].isna().sum() == 8255
    assert (tables["planes"]["year"] == "0000").sum() == 70
    assert (tables["airports"]["tzone"] == "\\N").sum() == 3
    assert (tables["weather"]["pressure"] == "9999.9").sum() == 2729
    assert (tables["weather"]["wind_gust"] == "999.9").sum() == 20_778


def test_the_flag_of_summer_time_follows_the_law(tables: dict[str, pd.DataFrame]) -> None:
    weather = tables["weather"]
    month, day = weather["month"].astype(int), weather["day"].astype(int)
    summer = (month * 100 + day).between(311, 1102)
    winter = ~(month * 100 + day).between(310, 1103)
    assert set(weather["isdst"][summer]) == {"Y"}
    assert set(weather["isdst"][winter]) == {"N"}


def test_text_keeps_null_blank_and_backslash_apart() -> None:
    rows = pd.DataFrame({"a": ["", None, "\\N", "x"], "b": ["1", "2", "3", None]}, dtype="str")
    assert load_text(rows) == b"\t1\n\\N\t2\n\\\\N\t3\nx\t\\N\n"
