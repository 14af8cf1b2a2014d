"""Column types of MySQL and MariaDB and the logical types that their values have in the log."""

from __future__ import annotations

import re

_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 32, "int": 32, "bigint": 64}
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"})
_TIMES = frozenset({"date", "time", "datetime", "timestamp"})
_GEOMETRIES = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
    }
)
_BINARIES = (
    frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit"}) | _GEOMETRIES
)
_FLOATS = {"float": "float32", "double": "float64"}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38


def logical_type(
    data_type: str,
    column_type: str,
    texts: frozenset[str] = frozenset(),
    binaries: frozenset[str] = frozenset(),
) -> str | None:
    """The logical type of a column; None when we can't read it from the log.

    Args:
        data_type: as the catalogue names it, without length and sign.
        column_type: with both.
        texts: types that only one of the servers has, and that the log holds as texts.
        binaries: the same, held as bytes.
    """
    if data_type in _INTEGERS:
        return _integer(data_type, "unsigned" in column_type)
    found = _DECIMAL.match(column_type)
    if data_type == "decimal" and found:
        return f"decimal({found[1]},{found[2]})" if int(found[1]) <= _MOST_DIGITS else "string"
    if data_type == "year":
        return None if column_type == "year(2)" else "int16"
    if data_type in _FLOATS:
        return _FLOATS[data_type]
    if data_type in _TEXTS | _TIMES | texts:
        return "string"
    return "binary" if data_type in _BINARIES | binaries else None


def _integer(data_type: str, unsigned: bool) -> str:
    bits = _INTEGERS[data_type]
    if not unsigned:
        return f"int{bits}"
    if data_type == "mediumint":
        return "int32"
    return "decimal(20,0)" if bits == 64 else f"int{bits * 2}"
