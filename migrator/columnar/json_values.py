"""Values as JSON text, exact for every logical type (the rules are in docs/reference/events.md).

What a JSON parser may round travels as a text: 64-bit integers and decimals (the rule of Protocol Buffers' JSON
mapping). A float is a JSON number with as many digits as bring the same double back; a float32 is written as the
double that it equals.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from migrator.model.table import Column, TableSchema

NULL = "null"
_YEAR = re.compile(r"([-+]?)(\d+)(-.*)", re.DOTALL)
_INFINITE_DAYS, _INFINITE_MICROS = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)


def images(schema: TableSchema, rows: pa.Array) -> list[str]:
    """Row images (a struct array) as JSON objects; ``null`` where there is no image."""
    if not len(rows):
        return []
    columns = [
        [f"{name}:{value}" for value in column_text(column, rows.field(place))]
        for place, column in enumerate(schema.columns)
        for name in [quoted(column.name)]
    ]
    present = rows.is_valid().to_pylist()
    return [
        "{" + ",".join(values) + "}" if there else NULL
        for there, values in zip(present, zip(*columns, strict=True), strict=True)
    ]


def column_text(column: Column, values: pa.Array) -> Iterable[str]:
    """Each value of a column as JSON text."""
    if column.type in ("date", "timestamp", "timestamptz"):
        return _moments(column.type, values)
    writer = _WRITERS.get(column.type, _decimal)
    return [NULL if value is None else writer(value) for value in values.to_pylist()]


def quoted(text: str) -> str:
    """A text as JSON; other alphabets stay readable, and no line break is left in it."""
    return json.dumps(text, ensure_ascii=False)


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')


def _decimal(value: Any) -> str:
    return f'"{value:f}"'


def _binary(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode("ascii")}"'


_WRITERS: dict[str, Callable[[Any], str]] = {
    "bool": lambda value: "true" if value else "false",
    "int8": str,
    "int16": str,
    "int32": str,
    "int64": lambda value: f'"{value}"',
    "float32": _float,
    "float64": _float,
    "string": quoted,
    "binary": _binary,
}


def _moments(kind: str, values: pa.Array) -> list[str]:
    """Dates and moments in ISO 8601, years beyond 0000 to 9999 with their sign; PostgreSQL's infinities by name."""
    days = kind == "date"
    storage, unit = (pa.int32(), "datetime64[D]") if days else (pa.int64(), "datetime64[us]")
    low, high = _INFINITE_DAYS if days else _INFINITE_MICROS
    numbers = values.cast(storage).to_pylist()
    finite = np.array([0 if n is None or n in (low, high) else n for n in numbers], dtype=np.int64)
    end = "Z" if kind == "timestamptz" else ""
    found = []
    for number, text in zip(numbers, np.datetime_as_string(finite.view(unit)), strict=True):
        if number is None:
            found.append(NULL)
        elif number in (low, high):
            found.append('"-infinity"' if number == low else '"infinity"')
        else:
            found.append(f'"{_iso(str(text))}{end}"')
    return found


def _iso(text: str) -> str:
    match = _YEAR.fullmatch(text)
    if match is None:  # datetime_as_string prints nothing else
        raise ValueError(text)
    year = match[2].zfill(4)
    return f"{match[1] or ('+' if len(year) > 4 else '')}{year}{match[3]}"
