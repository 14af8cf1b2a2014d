"""PostgreSQL types and the logical types they become.

Built-in types have fixed OIDs (``pg_type.dat``), domains are followed to their base type. Every other type
travels
as the text of its output function: exact, and the same in the log and in a SELECT (see ``text_expression``).
"""

from __future__ import annotations

from collections.abc import Mapping

_BOOL, _BYTEA, _NAME, _INT8, _INT2, _INT4, _TEXT = 16, 17, 19, 20, 21, 23, 25
_FLOAT4, _FLOAT8, _BPCHAR, _VARCHAR, _DATE, _TIMESTAMP, _TIMESTAMPTZ, _NUMERIC = (
    700,
    701,
    1042,
    1043,
    1082,
    1114,
    1184,
    1700,
)
_LOGICAL = {
    _BOOL: "bool",
    _INT2: "int16",
    _INT4: "int32",
    _INT8: "int64",
    _FLOAT4: "float32",
    _FLOAT8: "float64",
    _BYTEA: "binary",
    _DATE: "date",
    _TIMESTAMP: "timestamp",
    _TIMESTAMPTZ: "timestamptz",
}
_NATIVE_CAST = {
    _BOOL: "bool",
    _INT2: "int2",
    _INT4: "int4",
    _INT8: "int8",
    _FLOAT4: "float4",
    _FLOAT8: "float8",
    _BYTEA: "bytea",
    _DATE: "date",
    _TIMESTAMP: "timestamp",
    _TIMESTAMPTZ: "timestamptz",
    _TEXT: "text",
    _VARCHAR: "varchar",
    _BPCHAR: "bpchar",  # without a length: the cast to text would cut the padding that the log has
}
_VARHDR_BYTES = 4
_MAX_PRECISION = 38

Domains = Mapping[int, tuple[int, int]]
"""OID of a domain -> OID and type modifier of what it is made of (which may be a domain again)."""


def base_type(oid: int, modifier: int, domains: Domains) -> tuple[int, int]:
    """OID and modifier behind any domains. A domain's own modifier counts, not the column's."""
    while oid in domains:
        oid, modifier = domains[oid]
    return oid, modifier


def logical_type(oid: int, modifier: int) -> str:
    """The logical type of a base type (see ``base_type``)."""
    if oid == _NUMERIC and modifier >= _VARHDR_BYTES:
        packed = modifier - _VARHDR_BYTES
        precision = (packed >> 16) & 0xFFFF
        scale = ((packed & 0x7FF) ^ 1024) - 1024  # 11 bits, signed: PostgreSQL 15 allows negative scales
        if precision <= _MAX_PRECISION and 0 <= scale <= precision:
            return f"decimal({precision},{scale})"
    return _LOGICAL.get(oid, "string")


def native_cast(oid: int) -> str | None:
    """The name of a base type that reaches Arrow unchanged in binary form, else None."""
    return _NATIVE_CAST.get(oid)
