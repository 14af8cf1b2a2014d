"""The mapping from the old flight tables to the new ones: one pure function per new table, each row made from one old
row.

Keys of the new tables are UUIDs of the old natural keys (RFC 9562, version 5), so both sides can be told apart and
joined without a lookup, and running the mapping again gives the same keys.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import blank_to_null, from_parts, instant, uuid5

mapping = Mapping()

NEW_YORK = "America/New_York"
CARRIER = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a01"
PLACE = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a02"
AIRCRAFT = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a03"
FLIGHT = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a04"
DIRECTORY = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a05"

LEGAL_FORM = r" (Inc\.|Co\.|Corporation)$"
MAKERS = {
    "AIRBUS INDUSTRIE": "AIRBUS",
    "CANADAIR LTD": "CANADAIR",
    "MCDONNELL DOUGLAS AIRCRAFT CO": "MCDONNELL DOUGLAS",
    "MCDONNELL DOUGLAS CORPORATION": "MCDONNELL DOUGLAS",
}
"""Old spellings of manufacturers."""

KM_PER_MILE = Decimal("1.609344")
M_PER_FOOT = Decimal("0.3048")
MM_PER_INCH = Decimal("25.4")
MS_PER_MPH = Decimal("0.44704")
FASTEST_WIND_MPH = 260
"""Above the strongest gust ever measured on Earth (253 mph, Barrow Island 1996): a sensor's fault."""

LATE_MIN = 15
"""A flight later than this counts as delayed (the rule of the US Bureau of Transportation Statistics)."""


@mapping.target("carrier", key="carrier_id")
def carrier(airlines: DataFrame) -> DataFrame:
    """Airlines, their legal form taken out of the name."""
    legal_form = F.regexp_extract("name", LEGAL_FORM, 1)
    return airlines.select(
        uuid5(CARRIER, _code("carrier")).alias("carrier_id"),
        _code("carrier").alias("code"),
        F.regexp_replace("name", LEGAL_FORM, "").alias("name"),
        blank_to_null(legal_form).alias("legal_form"),
    )


@mapping.target("place", key="place_id")
def place(airports: DataFrame) -> DataFrame:
    """Airports in metres, with codes for "unknown" turned into NULL."""
    return airports.select(
        uuid5(PLACE, _code("faa")).alias("place_id"),
        _code("faa").alias("code"),
        _place_name("name").alias("name"),
        F.col("lat").alias("latitude"),
        F.col("lon").alias("longitude"),
        F.round(F.col("alt").cast("decimal(7,0)") * F.lit(M_PER_FOOT), 2).alias("elevation_m"),
        F.col("tz").alias("utc_offset_h"),
        F.when(F.col("dst") == "A", True).when(F.col("dst") == "N", False).alias("observes_dst"),
        F.nullif("tzone", F.lit("\\N")).alias("time_zone"),
    )


@mapping.target("aircraft", key="aircraft_id")
def aircraft(planes: DataFrame) -> DataFrame:
    """Airframes, with one spelling of each manufacturer."""
    maker = F.col("manufacturer")
    for old, new in MAKERS.items():
        maker = F.when(F.col("manufacturer") == old, F.lit(new)).otherwise(maker)
    return planes.select(
        uuid5(AIRCRAFT, _code("tailnum")).alias("aircraft_id"),
        _code("tailnum").alias("tail_number"),
        F.when(F.col("type").startswith("Fixed wing"), "aeroplane")
        .when(F.col("type") == "Rotorcraft", "rotorcraft")
        .alias("kind"),
        maker.alias("manufacturer"),
        F.col("model"),
        F.nullif("year", F.lit(0)).alias("built_year"),
        F.col("seats"),
        F.round(F.col("speed").cast("decimal(5,0)") * F.lit(KM_PER_MILE), 2).alias("cruise_speed_kmh"),
    )


@mapping.target("aircraft_engine", key=("aircraft_id", "position"))
def aircraft_engine(planes: DataFrame) -> DataFrame:
    """One row for each engine of an aircraft."""
    count = F.col("engines").cast("int")
    positions = F.when(count >= 1, F.sequence(F.lit(1), count))
    return planes.select(
        uuid5(AIRCRAFT, _code("tailnum")).alias("aircraft_id"),
        F.explode(positions).alias("position"),
        F.col("engine").alias("design"),
        F.col("engine").startswith("Turbo").alias("is_turbine"),
    )


@mapping.target("directory_entry", key="entry_id")
def directory_entry(airlines: DataFrame, airports: DataFrame, planes: DataFrame) -> DataFrame:
    """Everything that has a code and a name, from three old tables in one."""
    carriers = _entries(airlines, "carrier", "carrier", F.col("name"))
    places = _entries(airports, "place", "faa", _place_name("name"))
    label = F.concat_ws(" ", "manufacturer", "model")
    return carriers.unionByName(places).unionByName(_entries(planes, "aircraft", "tailnum", label))


@mapping.target("flight", key="flight_id")
def flight(flights: DataFrame) -> DataFrame:
    """The plan of a flight, and how the flight ended."""
    status = (
        F.when(F.col("dep_time").isNull(), "cancelled")
        .when(F.col("arr_time").isNull() | F.col("arr_delay").isNull(), "diverted")
        .otherwise("flown")
    )
    return flights.select(
        _flight_id(),
        uuid5(CARRIER, _code("carrier")).alias("carrier_id"),
        F.col("flight").alias("flight_number"),
        uuid5(PLACE, _code("origin")).alias("origin_id"),
        _code("dest").alias("destination_code"),
        F.make_date("year", "month", "day").alias("service_date"),
        instant(_departs_local(), NEW_YORK).alias("departs_at"),
        _arrives_local().alias("arrives_local"),
        (F.col("distance").cast("decimal(6,0)") * F.lit(KM_PER_MILE))
        .cast("decimal(9,3)")
        .alias("distance_km"),
        _tail_number().alias("tail_number"),
        status.alias("status"),
    )


@mapping.target("departure", key="flight_id")
def departure(flights: DataFrame) -> DataFrame:
    """Flights that left the ground."""
    return flights.where("dep_time IS NOT NULL").select(
        _flight_id(),
        instant(_departed_local(), NEW_YORK).alias("departed_at"),
        F.col("dep_delay").alias("delay_min"),
    )


@mapping.target("arrival", key="flight_id")
def arrival(flights: DataFrame) -> DataFrame:
    """Flights that landed where they should, by the clock there: the old system knew no zone of destinations."""
    arrived = flights.where("dep_time IS NOT NULL AND arr_time IS NOT NULL AND arr_delay IS NOT NULL")
    expected = _arrives_local() + F.make_dt_interval(mins=F.col("arr_delay"))
    return arrived.select(
        _flight_id(),
        _nearest(_clock("arr_time"), expected).alias("landed_local"),
        F.col("arr_delay").alias("delay_min"),
        F.col("air_time").alias("air_time_min"),
    )


@mapping.target("diversion", key="flight_id")
def diversion(flights: DataFrame) -> DataFrame:
    """Flights that left and did not arrive where they should; some have a time of landing elsewhere."""
    diverted = flights.where("dep_time IS NOT NULL AND (arr_time IS NULL OR arr_delay IS NULL)")
    return diverted.select(
        _flight_id(),
        instant(_departed_local(), NEW_YORK).alias("departed_at"),
        F.date_format(_clock("arr_time"), "HH:mm").alias("landed_clock"),
    )


@mapping.target("cancellation", key="flight_id")
def cancellation(flights: DataFrame) -> DataFrame:
    """Flights that never left."""
    return flights.where("dep_time IS NULL").select(
        _flight_id(),
        instant(_departs_local(), NEW_YORK).alias("planned_at"),
        _tail_number().isNotNull().alias("aircraft_known"),
    )


@mapping.target("delay", key=("flight_id", "phase"))
def delay(flights: DataFrame) -> DataFrame:
    """One row for each end of a flight that was late."""
    phases = F.array(
        F.struct(F.lit("departure").alias("phase"), F.col("dep_delay").alias("minutes")),
        F.struct(F.lit("arrival").alias("phase"), F.col("arr_delay").alias("minutes")),
    )
    late = F.filter(phases, lambda phase: phase["minutes"] > LATE_MIN)
    return flights.where("dep_time IS NOT NULL").select(_flight_id(), F.inline(late))


@mapping.target("weather_observation", key="observation_id")
def weather_observation(weather: DataFrame) -> DataFrame:
    """Hourly weather in metric units; what the instruments can't have seen is NULL and marked."""
    # The old flag tells the two hours of the same name apart, when clocks go back.
    offset = F.when(F.col("isdst") == "Y", "-04:00").when(F.col("isdst") == "N", "-05:00")
    hhmm = F.col("hour").cast("int") * 100
    observed_at = instant(from_parts("year", "month", "day", hhmm), offset)
    is_suspect = F.coalesce(F.col("wind_speed") > FASTEST_WIND_MPH, F.lit(False))
    hour_number = F.floor(F.unix_seconds(observed_at) / 3600)
    station_number = F.conv(_code("origin"), 36, 10).cast("bigint")
    return weather.select(
        (hour_number * 36**3 + station_number).alias("observation_id"),
        uuid5(PLACE, _code("origin")).alias("place_id"),
        observed_at.alias("observed_at"),
        _celsius("temp").alias("temperature_c"),
        _celsius("dewp").alias("dew_point_c"),
        F.col("humid").alias("humidity_pct"),
        F.col("wind_dir").alias("wind_direction_deg"),
        _times(F.when(~is_suspect, F.col("wind_speed")), MS_PER_MPH, 2).alias("wind_speed_ms"),
        _times(F.nullif("wind_gust", F.lit(Decimal("999.9"))), MS_PER_MPH, 2).alias("wind_gust_ms"),
        is_suspect.alias("is_wind_suspect"),
        _times(F.col("precip"), MM_PER_INCH, 2).alias("precipitation_mm"),
        F.nullif("pressure", F.lit(Decimal("9999.9"))).alias("pressure_hpa"),
        _times(F.col("visib"), KM_PER_MILE, 3).alias("visibility_km"),
    )


def _code(name: str) -> Column:
    """A code without the blanks that a CHAR column pads it with on some servers."""
    return F.rtrim(F.col(name))


def _place_name(name: str) -> Column:
    r"""A name without the backslashes that an earlier import left before quotes (``Martha\\'s Vineyard``)."""
    return F.replace(F.col(name), F.lit("\\"), F.lit(""))


def _entries(rows: DataFrame, kind: str, code: str, label: Column) -> DataFrame:
    return rows.select(
        uuid5(DIRECTORY, F.lit(kind), _code(code)).alias("entry_id"),
        F.lit(kind).alias("kind"),
        _code(code).alias("code"),
        label.alias("label"),
    )


def _flight_id() -> Column:
    return uuid5(FLIGHT, "year", "month", "day", _code("carrier"), "flight", _code("origin")).alias(
        "flight_id"
    )


def _tail_number() -> Column:
    return blank_to_null(_code("tailnum"))


def _clock(hhmm: str) -> Column:
    """A clock time on the day of service; 2400 is the midnight that ends it."""
    return from_parts("year", "month", "day", hhmm)


def _departs_local() -> Column:
    return _clock("sched_dep_time")


def _departed_local() -> Column:
    delay_min = F.coalesce("dep_delay", F.lit(0))
    return _nearest(_clock("dep_time"), _departs_local() + F.make_dt_interval(mins=delay_min))


def _arrives_local() -> Column:
    """Planned arrival: an arrival by the clock before the departure is on the next day."""
    next_day = F.when(F.col("sched_arr_time") < F.col("sched_dep_time"), 1).otherwise(0)
    return _clock("sched_arr_time") + F.make_dt_interval(days=next_day)


def _nearest(clock: Column, expected: Column) -> Column:
    """The clock time on the day that brings it nearest to the expected one."""
    apart_s = F.unix_seconds(expected.cast("timestamp")) - F.unix_seconds(clock.cast("timestamp"))
    days = F.floor((apart_s + 43_200) / 86_400).cast("int")
    return clock + F.make_dt_interval(days=days)


def _celsius(name: str) -> Column:
    return F.round((F.col(name) - 32) * 5 / 9, 2).cast("decimal(5,2)")


def _times(value: Column, factor: Decimal, places: int) -> Column:
    return F.round(value * F.lit(factor), places)
