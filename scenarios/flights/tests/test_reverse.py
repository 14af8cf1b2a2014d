"""The way back over a few rows, without any server."""

# ruff: noqa: D103 - a test says in its name what holds
from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from transforms import load_mapping
from transforms.testing import run

pytestmark = pytest.mark.spark

back = load_mapping(Path(__file__).parent.parent / "reverse.py")

OBSERVATION: dict[str, Any] = {
    "observation_id": 377_000 * 36**3 + int("EWR", 36), "observed_at": datetime(2013, 1, 1, 6, tzinfo=UTC),
    "temperature_c": Decimal("3.90"), "dew_point_c": Decimal("-3.30"), "humidity_pct": Decimal("59.37"),
    "wind_direction_deg": 270, "wind_speed_ms": Decimal("4.63"), "wind_gust_ms": Decimal("4.63"),
    "is_wind_suspect": False, "precipitation_mm": Decimal("2.54"), "pressure_hpa": Decimal("1012.3"),
    "visibility_km": Decimal("16.093"),
}  # fmt: skip


def test_weather_in_old_units() -> None:
    [row] = run(back, "weather", weather_observation=[OBSERVATION])
    assert (row["origin"], row["month"], row["hour"], row["isdst"]) == ("EWR", 1, 1, "N")
    assert (row["temp"], row["wind_speed"], row["visib"]) == (
        Decimal("39.02"),
        Decimal("10.35702"),
        Decimal("10.00"),
    )


def test_a_faulty_sensor_reads_as_the_old_one_did() -> None:
    [row] = run(back, "weather", weather_observation=[OBSERVATION | {"is_wind_suspect": True}])
    assert row["wind_speed"] == Decimal("1048.36058")


def test_a_flight_is_one_row_again() -> None:
    flight = {
        "flight_id": "a", "carrier_id": "b", "flight_number": 1545, "origin_id": "c", "destination_code": "IAH",
        "service_date": date(2013, 1, 1), "departs_at": datetime(2013, 1, 1, 10, 15, tzinfo=UTC),
        "arrives_local": datetime(2013, 1, 1, 8, 19), "distance_km": Decimal("2253.082"), "tail_number": "N14228",
        "status": "flown",
    }  # fmt: skip
    [row] = run(
        back,
        "flights",
        flight=[flight],
        departure=[
            {"flight_id": "a", "departed_at": datetime(2013, 1, 2, 5, 0, tzinfo=UTC), "delay_min": 1125}
        ],
        arrival=[
            {
                "flight_id": "a",
                "landed_local": datetime(2013, 1, 2, 3, 4),
                "delay_min": 1125,
                "air_time_min": 227,
            }
        ],
        diversion=[{"flight_id": "other", "landed_clock": "01:00"}],
        carrier=[{"carrier_id": "b", "code": "UA"}],
        place=[{"place_id": "c", "code": "EWR"}],
    )
    assert (row["dep_time"], row["arr_time"], row["sched_dep_time"], row["sched_arr_time"]) == (
        2400,
        304,
        515,
        819,
    )
    assert (row["carrier"], row["origin"], row["distance"], row["time_hour"]) == (
        "UA",
        "EWR",
        1400,
        "2013-01-01T10:00:00Z",
    )
