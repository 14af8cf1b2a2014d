"""Column types of MySQL and MariaDB as the writer needs them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrator.adapters.targets.mysql.structure import Storage
from migrator.model.target import TargetColumn

_SIGNED = {"tinyint": "tinyint", "smallint": "smallint", "mediumint": "int", "int": "int", "bigint": "bigint"}
_UNSIGNED = {
    "tinyint": "smallint",
    "smallint": "int",
    "mediumint": "int",
    "int": "bigint",
    "bigint": "decimal(20,0)",
}
_PLAIN = {
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "int",
}
BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
TEXT = frozenset(
    {
        "char",
        "varchar",
        "tinytext",
        "text",
        "mediumtext",
        "longtext",
        "enum",
        "set",
        "json",
        "uuid",
        "inet4",
        "inet6",
    }
)
WRITTEN = frozenset({*_SIGNED, *_PLAIN, *BINARY, *TEXT, "decimal", "bit", "time"})
"""Types that values can be written to; others are refused by name."""

_MOST_DIGITS = 38
_MEMBER = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True)
class Declared:
    """A column as information_schema describes it. ``precision``, ``scale``: of numbers; ``fraction``: of
    seconds."""

    name: str
    data_type: str
    column_type: str
    nullable: bool
    has_default: bool
    generated: bool
    precision: int | None
    scale: int | None
    fraction: int | None
    character_set: str | None
    collation: str | None
    length: int | None


def storage_of(declared: Declared) -> Storage:
    """Returns the column's storage, with the Spark type that its values are cast to."""
    base, kind = declared.data_type.lower(), declared.column_type
    text = f"{kind} CHARACTER SET {declared.character_set} COLLATE {declared.collation}"
    column = TargetColumn(
        name=declared.name,
        spark_type=_spark_type(base, declared),
        native_type=kind,
        nullable=declared.nullable,
        has_default=declared.has_default,
        generated=declared.generated,
        collation=_inexact(declared),
    )
    return Storage(
        column=column,
        base=base,
        declared=text if declared.character_set and base != "json" else kind,
        precision=declared.fraction or 0,
        members=tuple(one.replace("''", "'") for one in _MEMBER.findall(kind))
        if base in ("enum", "set")
        else (),
        length=_length(base, declared),
        collation=(declared.collation or "") if declared.character_set else "",
    )


def _inexact(declared: Declared) -> str:
    """The collation by which texts that differ may be one; empty where each is one of its own."""
    collation = (declared.collation or "") if declared.character_set else ""
    exact = collation in ("binary", "utf8mb4_0900_bin") or collation.endswith("_nopad_bin")
    return "" if exact else collation


def _length(base: str, declared: Declared) -> int:
    if base == "bit":
        return (int(declared.precision or 1) + 7) // 8
    return int(declared.length or 0) if base == "binary" else 0


def _spark_type(base: str, declared: Declared) -> str:
    kind = declared.column_type.lower()
    if kind.startswith("tinyint(1)") and "unsigned" not in kind:
        return "boolean"
    if base in _SIGNED:
        return (_UNSIGNED if "unsigned" in kind else _SIGNED)[base]
    if base == "decimal":
        digits = declared.precision or 0
        return f"decimal({digits},{declared.scale or 0})" if digits <= _MOST_DIGITS else "string"
    if base == "bit":
        return "boolean" if kind == "bit(1)" else "binary"
    if base in BINARY:
        return "binary"
    return _PLAIN.get(base, "string")
