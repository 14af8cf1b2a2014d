"""Tells whether the log stores a column as the catalog declares it.

The catalog has the present structure, the log that of its place. A column whose type was changed in between would be
read by a declaration that isn't its own.
"""

from __future__ import annotations

import re

from migrator.adapters.sources.binlog.events import table_map
from migrator.adapters.sources.binlog.events.table_map import BINARY_COLLATION, LoggedColumn

_DECLARED = re.compile(r"(\w+)(?:\((.*)\))?(.*)", re.DOTALL)
_CODES: dict[str, tuple[int, ...]] = {
    "tinyint": (table_map.TINY,),
    "smallint": (table_map.SHORT,),
    "mediumint": (table_map.INT24,),
    "int": (table_map.LONG,),
    "bigint": (table_map.LONGLONG,),
    "float": (table_map.FLOAT,),
    "double": (table_map.DOUBLE,),
    "decimal": (table_map.NEWDECIMAL,),
    "bit": (table_map.BIT,),
    "year": (table_map.YEAR,),
    "date": (table_map.DATE, table_map.NEWDATE),
    "time": (table_map.TIME2, table_map.TIME),
    "datetime": (table_map.DATETIME2, table_map.DATETIME),
    "timestamp": (table_map.TIMESTAMP2, table_map.TIMESTAMP),
    "char": (table_map.STRING,),
    "binary": (table_map.STRING,),
    "varchar": (table_map.VARCHAR, table_map.VAR_STRING, table_map.VARCHAR_COMPRESSED),
    "varbinary": (table_map.VARCHAR, table_map.VAR_STRING, table_map.VARCHAR_COMPRESSED),
    "enum": (table_map.ENUM,),
    "set": (table_map.SET,),
    "json": (table_map.JSON,),
    **dict.fromkeys(
        ("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"),
        (table_map.BLOB, table_map.BLOB_COMPRESSED),
    ),
}
"""Type codes by the declared type; of a type that isn't among them nothing is known."""
_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal")
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")


def agrees(logged: LoggedColumn, declared: str) -> bool:
    """Tells whether values in the log are of the declared type, as far as that is known. Lengths don't matter.

    ``declared``: COLUMN_TYPE, in small letters but for the labels of ENUM and SET.
    """
    found = _DECLARED.match(declared)
    if found is None or found[1] not in _CODES:
        return True
    base, inner, rest = found[1], found[2] or "", found[3]
    if logged.type not in _CODES[base]:
        return False
    if base in _NUMBERS and logged.unsigned != ("unsigned" in rest):
        return False
    if base == "decimal" and inner:
        precision, _, scale = inner.partition(",")
        return (logged.meta, logged.scale) == (int(precision), int(scale or 0))
    if base in _BYTES or base in _TEXTS:
        return (logged.collation == BINARY_COLLATION) == (base in _BYTES)
    if base in ("enum", "set"):
        return len(logged.labels) == len(re.findall(r"'(?:[^'\\]|''|\\.)*'", inner))
    return True
