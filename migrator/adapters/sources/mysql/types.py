"""Column types of MySQL and what becomes of them."""

from __future__ import annotations

import re

_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TEXT = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json")
_TIMES = ("date", "time", "datetime", "timestamp")
_GEOMETRY = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geomcollection",
    "geometrycollection",
)
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob", "vector")
_BINARY = ("binary", "varbinary", "bit", *_BLOBS, *_GEOMETRY)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38


def logical_type(data_type: str, column_type: str) -> str | None:
    """The logical type of a MySQL type; None when we can't read it from the log."""
    unsigned = "unsigned" in column_type
    if data_type in _INTEGERS:
        bits = _INTEGERS[data_type]
        if not unsigned:
            return f"int{bits}"
        if data_type == "mediumint":
            return "int32"
        return "decimal(20,0)" if bits == 64 else f"int{bits * 2}"
    found = _DECIMAL.match(column_type)
    if data_type == "decimal" and found:
        return f"decimal({found[1]},{found[2]})" if int(found[1]) <= _MOST_DIGITS else "string"
    if data_type in ("float", "double"):
        return "float32" if data_type == "float" else "float64"
    if data_type == "year":
        return "int16"
    if data_type in _TEXT or data_type in _TIMES:
        return "string"
    return "binary" if data_type in _BINARY else None
