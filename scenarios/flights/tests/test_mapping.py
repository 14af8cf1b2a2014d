"""The mapping over a few rows, without any server: what a user's own unit tests look like."""

# ruff: noqa: D103 - a test says in its name what holds
from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import MappingError
from transforms import load_mapping
from transforms.testing import run

pytestmark = pytest.mark.spark

mapping = load_mapping(Path(__file__).parent.parent / "mapping.py")

FLIGHT: dict[str, Any] = {
    "year": 2013, "month": 1, "day": 1, "dep_time": 517, "sched_dep_time": 515, "dep_delay": 2,
    "arr_time": 830, "sched_arr_time": 819, "arr_delay": 11, "carrier": "UA", "flight": 1545,
    "tailnum": "N14228", "origin": "EWR", "dest": "IAH", "air_time": 227, "distance": 1400,
    "hour": 5, "minute": 15, "time_hour": "2013-01-01T10:00:00Z",
}  # fmt: skip
OPTIONAL = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
WEATHER: dict[str, Any] = {
    "origin": "EWR", "year": 2013, "month": 1, "day": 1, "hour": 1, "isdst": "N", "temp": Decimal("39.02"),
    "dewp": Decimal("26.06"), "humid": Decimal("59.37"), "wind_dir": 270, "wind_speed": Decimal("10.35702"),
    "wind_gust": Decimal("999.90000"), "precip": Decimal("0.10"), "pressure": Decimal("9999.9"),
    "visib": Decimal("10.00"),
}  # fmt: skip


def flights(target: str, **changes: object) -> list[dict[str, Any]]:
    """Rows that a target gets from the one flight above, changed."""
    row = FLIGHT | changes
    types = {name: pa.int16() for name in OPTIONAL}  # a column of one NULL would have no type
    columns = {name: pa.array([value], type=types.get(name)) for name, value in row.items()}
    return run(mapping, target, flights=pa.table(columns))


def test_a_flight_keeps_its_plan_in_exact_terms() -> None:
    [row] = flights("flight")
    assert row["departs_at"] == datetime(2013, 1, 1, 10, 15, tzinfo=UTC)
    assert row["arrives_local"] == datetime(2013, 1, 1, 8, 19)
    assert row["service_date"] == date(2013, 1, 1)
    assert row["distance_km"] == Decimal("2253.082")
    assert (row["flight_number"], row["destination_code"], row["status"]) == (1545, "IAH", "flown")
    assert row["tail_number"] == "N14228"


def test_padding_of_char_columns_changes_no_id() -> None:
    padded = flights("flight", tailnum="      ", carrier="UA ", origin="EWR ", dest="IAH  ")
    assert padded == flights("flight", tailnum="")
    assert padded[0]["tail_number"] is None
    assert padded[0]["flight_id"] == flights("flight")[0]["flight_id"]


def test_the_id_follows_the_natural_key() -> None:
    assert flights("flight")[0]["flight_id"] != flights("flight", flight=1546)[0]["flight_id"]
    assert flights("flight")[0]["flight_id"] == flights("departure")[0]["flight_id"]


def test_2400_is_the_midnight_that_ends_the_day() -> None:
    [row] = flights("departure", sched_dep_time=2359, dep_time=2400, dep_delay=1)
    assert row["departed_at"] == datetime(2013, 1, 2, 5, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("sched", "clock", "delay", "departed_utc"),
    [
        (2300, 15, 75, datetime(2013, 1, 11, 5, 15)),
        (15, 2350, -25, datetime(2013, 1, 10, 4, 50)),
        (600, 620, 1460, datetime(2013, 1, 11, 11, 20)),
    ],
)
def test_the_delay_tells_the_day_of_departure(
    sched: int, clock: int, delay: int, departed_utc: datetime
) -> None:
    [row] = flights("departure", day=10, sched_dep_time=sched, dep_time=clock, dep_delay=delay)
    assert row["departed_at"] == departed_utc.replace(tzinfo=UTC)


def test_clocks_change_twice_a_year() -> None:
    def departs(**planned: int) -> datetime:
        departs_at: datetime = flights("flight", **planned)[0]["departs_at"]
        return departs_at

    assert departs(month=7, day=1) == datetime(2013, 7, 1, 9, 15, tzinfo=UTC)
    skipped = departs(month=3, day=10, sched_dep_time=230)
    assert skipped == datetime(2013, 3, 10, 7, 30, tzinfo=UTC)
    first_of_two = departs(month=11, day=3, sched_dep_time=130)
    assert first_of_two == datetime(2013, 11, 3, 5, 30, tzinfo=UTC)


def test_an_arrival_by_the_clock_before_departure_is_on_the_next_day() -> None:
    night = {"sched_dep_time": 2200, "sched_arr_time": 35, "arr_time": 2355, "arr_delay": -40}
    assert flights("flight", **night)[0]["arrives_local"] == datetime(2013, 1, 2, 0, 35)
    assert flights("arrival", **night)[0]["landed_local"] == datetime(2013, 1, 1, 23, 55)


@pytest.mark.slow
def test_one_flight_goes_to_the_tables_of_its_outcome() -> None:
    def tables(**changes: object) -> set[str]:
        outcomes = ("departure", "arrival", "diversion", "cancellation", "delay")
        return {target for target in outcomes if flights(target, **changes)}

    assert tables() == {"departure", "arrival"}
    assert tables(dep_delay=16) == {"departure", "arrival", "delay"}
    assert tables(arr_delay=None) == {"departure", "diversion"}
    assert tables(arr_delay=None, arr_time=None) == {"departure", "diversion"}
    assert tables(**dict.fromkeys(OPTIONAL)) == {"cancellation"}


def test_both_ends_of_a_flight_can_be_late() -> None:
    rows = flights("delay", dep_delay=16, arr_delay=200)
    assert [(row["phase"], row["minutes"]) for row in rows] == [("arrival", 200), ("departure", 16)]
    assert flights("delay", dep_delay=15, arr_delay=15) == []


def test_a_time_that_no_clock_shows_is_refused() -> None:
    with pytest.raises(MappingError) as caught:
        flights("departure", dep_time=1299)
    assert "1299" in caught.value.cause


def test_weather_in_metric_units_with_codes_as_null() -> None:
    [row] = run(mapping, "weather_observation", weather=[WEATHER])
    assert row["observed_at"] == datetime(2013, 1, 1, 6, tzinfo=UTC)
    assert row["temperature_c"] == Decimal("3.90")
    assert row["wind_speed_ms"] == Decimal("4.63")
    assert row["precipitation_mm"] == Decimal("2.54")
    assert (row["wind_gust_ms"], row["pressure_hpa"], row["is_wind_suspect"]) == (None, None, False)


def test_the_two_hours_of_one_name_are_two_observations() -> None:
    autumn = WEATHER | {"month": 11, "day": 3, "hour": 1}
    rows = run(mapping, "weather_observation", weather=[autumn | {"isdst": "Y"}, autumn | {"isdst": "N"}])
    assert [row["observed_at"].astimezone(UTC).hour for row in rows] == [5, 6]
    assert rows[0]["observation_id"] != rows[1]["observation_id"]


def test_a_storm_that_never_was() -> None:
    [row] = run(mapping, "weather_observation", weather=[WEATHER | {"wind_speed": Decimal("1048.36058")}])
    assert (row["wind_speed_ms"], row["is_wind_suspect"]) == (None, True)


def test_reference_tables() -> None:
    airlines = [{"carrier": "9E", "name": "Endeavor Air Inc."}, {"carrier": "MQ", "name": "Envoy Air"}]
    rows = run(mapping, "carrier", airlines=airlines)
    assert {(r["code"], r["name"], r["legal_form"]) for r in rows} == {
        ("9E", "Endeavor Air", "Inc."),
        ("MQ", "Envoy Air", None),
    }
    airport = {
        "faa": "MVY",
        "name": "Martha\\\\'s Vineyard",
        "lat": Decimal("41.3931"),
        "lon": Decimal("-70.6"),
    }
    [place] = run(mapping, "place", airports=[airport | {"alt": 67, "tz": -5, "dst": "U", "tzone": "\\N"}])
    assert (place["name"], place["elevation_m"]) == ("Martha's Vineyard", Decimal("20.42"))
    assert (place["observes_dst"], place["time_zone"]) == (None, None)


def test_an_aircraft_and_its_engines() -> None:
    plane: dict[str, Any] = {"tailnum": "N10156", "year": 0, "type": "Rotorcraft", "speed": 100, "seats": 5}
    plane |= {"manufacturer": "AIRBUS INDUSTRIE", "model": "X", "engines": 2, "engine": "Turbo-shaft"}
    [aircraft] = run(mapping, "aircraft", planes=[plane])
    assert (aircraft["built_year"], aircraft["kind"]) == (None, "rotorcraft")
    assert (aircraft["manufacturer"], aircraft["cruise_speed_kmh"]) == ("AIRBUS", Decimal("160.93"))
    engines = run(mapping, "aircraft_engine", planes=[plane])
    assert [(row["position"], row["is_turbine"]) for row in engines] == [(1, True), (2, True)]
    assert run(mapping, "aircraft_engine", planes=[plane | {"engines": 0}]) == []


def test_three_tables_in_one_directory() -> None:
    rows = run(
        mapping,
        "directory_entry",
        airlines=[{"carrier": "AA", "name": "American"}],
        airports=[{"faa": "AAA", "name": "Somewhere"}],
        planes=[{"tailnum": "AA", "manufacturer": "PIPER", "model": "PA-28"}],
    )
    assert {(r["kind"], r["code"], r["label"]) for r in rows} == {
        ("carrier", "AA", "American"),
        ("place", "AAA", "Somewhere"),
        ("aircraft", "AA", "PIPER PA-28"),
    }
    assert len({row["entry_id"] for row in rows}) == 3
