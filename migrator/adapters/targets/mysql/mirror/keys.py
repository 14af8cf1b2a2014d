"""Keys and indexes that find the mirror's rows by values of any length in MySQL and MariaDB. Pure: no values inside.

InnoDB indexes 3,072 bytes, and a source may have longer keys. So a key with bytes in it is found by their
short form, in columns that the server computes: the bytes themselves below 64, else the first 32 and the
SHA-256 of all. Different values have different ones. Of other columns of bytes an index holds the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.mysql.mirror.names import KEY, ROW, index_name, place
from migrator.adapters.targets.mysql.mirror.values import BYTES, column_of, sql_type
from migrator.adapters.targets.mysql.rows.merge import columns as quoted_columns
from migrator.adapters.targets.mysql.rows.merge import quoted
from migrator.adapters.targets.shared.mirror.mirrored import equal
from migrator.model.table import TableSchema

_SHORT_BYTES = 64
_KEPT_BYTES = 32  # and as many of the digest
_PREFIX_BYTES = 255
_INDEX_BYTES = 3000


def by_bytes(schema: TableSchema) -> bool:
    """Tells whether the mirror holds some column of the key as bytes."""
    return any(is_bytes(schema, name) for name in schema.key)


def is_bytes(schema: TableSchema, name: str) -> bool:
    """Tells whether the mirror holds a column as bytes."""
    return sql_type(column_of(schema, name)) == BYTES


def index_of(schema: TableSchema, names: Sequence[str]) -> str:
    """The index by which rows are found by these columns."""
    if tuple(names) != schema.key[: len(names)]:
        return index_name(names)
    return KEY if by_bytes(schema) else "PRIMARY"


def found(schema: TableSchema, names: Sequence[str], alias: str, values: Sequence[str]) -> str:
    """The rows ``alias`` of a table of the mirror in which these columns have these values."""
    exact = equal([f"{alias}.{place(name)}" for name in names], values)
    if index_of(schema, names) != KEY:
        return exact
    shorts = [
        f"{alias}.{_short_column(schema, name)} = {short(value)}"
        for name, value in zip(names, values, strict=True)
        if is_bytes(schema, name)
    ]
    return " AND ".join([*shorts, exact])


def short(value: str) -> str:
    """SQL of the short form of bytes."""
    long = f"CONCAT(LEFT({value}, {_KEPT_BYTES}), UNHEX(SHA2({value}, 256)))"
    return f"IF(LENGTH({value}) < {_SHORT_BYTES}, {value}, {long})"


def key_body(schema: TableSchema) -> list[str]:
    """Returns the table's definition beside its own columns: its keys, and the columns that they need."""
    if not by_bytes(schema):
        return [f"PRIMARY KEY ({', '.join(map(place, schema.key))})"]
    row = f"{quoted(ROW)} BIGINT NOT NULL AUTO_INCREMENT"
    return [row, *_shorts(schema), f"PRIMARY KEY ({quoted(ROW)})", _key(schema)]


def lengthen(schema: TableSchema) -> str:
    """Returns the ALTER clauses that turn a table of the first format, whose key held few bytes, into the present."""
    kept = [f"MODIFY {place(name)} {BYTES} NOT NULL" for name in schema.key if is_bytes(schema, name)]
    row = f"ADD {quoted(ROW)} BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
    shorts = [f"ADD {one}" for one in _shorts(schema)]
    return ", ".join(["DROP PRIMARY KEY", *kept, row, *shorts, f"ADD {_key(schema)}"])


def index_parts(names: Sequence[str], kinds: Sequence[str]) -> str:
    """Columns, or places, in an index: of bytes the first ones."""
    most = min(_PREFIX_BYTES, _INDEX_BYTES // len(names))
    return ", ".join(
        f"{name}({most})" if kind == BYTES else name for name, kind in zip(names, kinds, strict=True)
    )


def _short_column(schema: TableSchema, name: str) -> str:
    return quoted(f"{KEY} {schema.key.index(name)}")


def _shorts(schema: TableSchema) -> list[str]:
    return [
        f"{_short_column(schema, name)} VARBINARY({_SHORT_BYTES}) AS ({short(place(name))}) STORED"
        for name in schema.key
        if is_bytes(schema, name)
    ]


def _key(schema: TableSchema) -> str:
    parts = [_short_column(schema, name) if is_bytes(schema, name) else place(name) for name in schema.key]
    return f"UNIQUE KEY {quoted_columns([KEY])} ({', '.join(parts)})"
