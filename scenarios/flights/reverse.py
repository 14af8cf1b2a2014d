"""The way back: one pure function per old table. Every value comes back as it was, but for the names of
airports.

``mapping.py`` has taken out stray backslashes: ``airports.name`` comes back without them. A clock time that a clock
skips in spring can't be told from the one an hour later, and comes back as that.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()

NEW_YORK = "America/New_York"
KM_PER_MILE = Decimal("1.609344")
M_PER_FOOT = Decimal("0.3048")
MM_PER_INCH = Decimal("25.4")
MS_PER_MPH = Decimal("0.44704")
MPH_PER_KNOT = Decimal("1.15078")
"""Miles an hour in a knot as the old system counted: its winds are whole knots times this."""
IMPOSSIBLE_WIND_MPH = Decimal("1048.36058")
"""The one reading of a faulty sensor that the old data have: new rows only say that there was a fault."""
STATIONS = 36**3
"""Observations' numbers are hours times this, and the station."""


@mapping.target("airlines", key="carrier")
def airlines(carrier: DataFrame) -> DataFrame:
    """The legal form is a part of the name again."""
    return carrier.select(
        F.col("code").alias("carrier"),
        F.concat_ws(" ", "name", "legal_form").alias("name"),
    )


@mapping.target("airports", key="faa")
def airports(place: DataFrame) -> DataFrame:
    """Feet, and codes for "unknown"."""
    return place.select(
        F.col("code").alias("faa"),
        F.col("name"),
        F.col("latitude").alias("lat"),
        F.col("longitude").alias("lon"),
        _whole("elevation_m", M_PER_FOOT).alias("alt"),
        F.col("utc_offset_h").alias("tz"),
        F.when(F.col("observes_dst"), "A").when(~F.col("observes_dst"), "N").otherwise("U").alias("dst"),
        F.coalesce("time_zone", F.lit("\\N")).alias("tzone"),
    )


@mapping.target(
    "planes",
    key="tailnum",
    grain="aircraft.tail_number",
    links=[
        "aircraft_engine.aircraft_id = aircraft.aircraft_id",
        "directory_entry.code = aircraft.tail_number",
    ],
)
def planes(aircraft: DataFrame, aircraft_engine: DataFrame, directory_entry: DataFrame) -> DataFrame:
    """An aircraft with the number of its engines; the directory still has the old spelling of its manufacturer."""
    engines = aircraft_engine.groupBy("aircraft_id").agg(
        F.count("position").alias("engines"), F.max("design").alias("engine")
    )
    entries = directory_entry.where(F.col("kind") == "aircraft").select(
        F.col("code").alias("tail_number"), F.col("label").alias("entry")
    )
    model = F.concat(F.lit(" "), "model")
    old_spelling = F.expr("left(entry, length(entry) - length(model) - 1)")
    wings = F.when(F.col("engines") == 1, "Fixed wing single engine").otherwise("Fixed wing multi engine")
    joined = aircraft.join(engines, "aircraft_id").join(entries, "tail_number", "left")
    return joined.select(
        F.col("tail_number").alias("tailnum"),
        F.coalesce("built_year", F.lit(0)).alias("year"),
        F.when(F.col("kind") == "rotorcraft", "Rotorcraft").otherwise(wings).alias("type"),
        F.when(F.endswith("entry", model), old_spelling)
        .otherwise(F.col("manufacturer"))
        .alias("manufacturer"),
        "model",
        F.col("engines"),
        "seats",
        _whole("cruise_speed_kmh", KM_PER_MILE).alias("speed"),
        "engine",
    )


@mapping.target(
    "flights",
    key=("year", "month", "day", "carrier", "flight", "origin"),
    grain="flight.flight_id",
    links=[
        "departure.flight_id = flight.flight_id",
        "arrival.flight_id = flight.flight_id",
        "diversion.flight_id = flight.flight_id",
        "flight.carrier_id = carrier.carrier_id",
        "flight.origin_id = place.place_id",
    ],
)
def flights(
    flight: DataFrame,
    departure: DataFrame,
    arrival: DataFrame,
    diversion: DataFrame,
    carrier: DataFrame,
    place: DataFrame,
) -> DataFrame:
    """A flight's plan and what became of it, in one row again; times by the clock, as hhmm."""
    left = departure.select("flight_id", "departed_at", F.col("delay_min").alias("dep_delay"))
    landed = arrival.select(
        "flight_id", "landed_local", F.col("delay_min").alias("arr_delay"), "air_time_min"
    )
    elsewhere = diversion.select("flight_id", "landed_clock")
    joined = (
        flight.join(carrier.select("carrier_id", F.col("code").alias("carrier_code")), "carrier_id")
        .join(place.select(F.col("place_id").alias("origin_id"), F.col("code").alias("origin")), "origin_id")
        .join(left, "flight_id", "left")
        .join(landed, "flight_id", "left")
        .join(elsewhere, "flight_id", "left")
    )
    planned = _clock_in_new_york("departs_at")
    arrived = F.coalesce(_hhmm(F.col("landed_local")), F.replace("landed_clock", F.lit(":")).cast("int"))
    return joined.select(
        F.year("service_date").alias("year"),
        F.month("service_date").alias("month"),
        F.day("service_date").alias("day"),
        _ending_the_day(_hhmm(_clock_in_new_york("departed_at"))).alias("dep_time"),
        _hhmm(planned).alias("sched_dep_time"),
        "dep_delay",
        _ending_the_day(arrived).alias("arr_time"),
        _hhmm(F.col("arrives_local")).alias("sched_arr_time"),
        "arr_delay",
        F.col("carrier_code").alias("carrier"),
        F.col("flight_number").alias("flight"),
        F.coalesce("tail_number", F.lit("")).alias("tailnum"),
        "origin",
        F.col("destination_code").alias("dest"),
        F.col("air_time_min").alias("air_time"),
        _whole("distance_km", KM_PER_MILE).alias("distance"),
        F.hour(planned).alias("hour"),
        F.minute(planned).alias("minute"),
        F.date_format("departs_at", "yyyy-MM-dd'T'HH:00:00'Z'").alias("time_hour"),
    )


@mapping.target("weather", key=("origin", "year", "month", "day", "hour", "isdst"))
def weather(weather_observation: DataFrame) -> DataFrame:
    """Local hours, Fahrenheit, miles and inches, and NOAA's codes for what is missing."""
    local = _clock_in_new_york("observed_at")
    behind_s = F.unix_seconds("observed_at") - F.unix_seconds(local.cast("timestamp"))
    return weather_observation.select(
        F.conv(F.col("observation_id") % STATIONS, 10, 36).alias("origin"),
        F.year(local).alias("year"),
        F.month(local).alias("month"),
        F.day(local).alias("day"),
        F.hour(local).alias("hour"),
        F.when(behind_s == 4 * 3600, "Y").when(behind_s == 5 * 3600, "N").alias("isdst"),
        _fahrenheit("temperature_c").alias("temp"),
        _fahrenheit("dew_point_c").alias("dewp"),
        F.col("humidity_pct").alias("humid"),
        F.col("wind_direction_deg").alias("wind_dir"),
        F.when(F.col("is_wind_suspect"), F.lit(IMPOSSIBLE_WIND_MPH))
        .otherwise(_wind_mph("wind_speed_ms"))
        .alias("wind_speed"),
        F.coalesce(_wind_mph("wind_gust_ms"), F.lit(Decimal("999.9"))).alias("wind_gust"),
        _over("precipitation_mm", MM_PER_INCH, 2).alias("precip"),
        F.coalesce("pressure_hpa", F.lit(Decimal("9999.9"))).alias("pressure"),
        _over("visibility_km", KM_PER_MILE, 2).alias("visib"),
    )


def _over(name: str, factor: Decimal, places: int) -> Column:
    """A measure in the old unit, rounded to the old column's digits."""
    return F.round(F.col(name) / F.lit(factor), places)


def _whole(name: str, factor: Decimal) -> Column:
    return _over(name, factor, 0).cast("int")


def _fahrenheit(name: str) -> Column:
    return F.round(F.col(name) * 9 / 5 + 32, 2)


def _wind_mph(name: str) -> Column:
    """Whole knots, where the reading can be one; what only the new side has measured, as exactly as mph can be."""
    knots = F.round(F.round(F.col(name) / F.lit(MS_PER_MPH), 5) / F.lit(MPH_PER_KNOT), 0)
    by_knots = F.round(knots * F.lit(MPH_PER_KNOT), 5).cast("decimal(9,5)")
    same = F.round(by_knots * F.lit(MS_PER_MPH), 2) == F.col(name)
    return F.when(same, by_knots).otherwise(_over(name, MS_PER_MPH, 5).cast("decimal(9,5)"))


def _clock_in_new_york(instant: str) -> Column:
    """The local time of an instant."""
    return F.from_utc_timestamp(instant, NEW_YORK).cast("timestamp_ntz")


def _hhmm(local: Column) -> Column:
    return F.hour(local) * 100 + F.minute(local)


def _ending_the_day(hhmm: Column) -> Column:
    """Midnight is 2400: the old system wrote actual times so."""
    return F.when(hhmm == 0, 2400).otherwise(hhmm)
