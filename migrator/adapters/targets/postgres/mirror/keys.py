"""Keys and indexes that find the mirror's rows by values of any length. Pure: identifiers are quoted by the caller.

A B-tree takes entries of some 2,700 bytes, and a source may hold longer keys and links. So of bytes their
short form is indexed: themselves below 64 bytes, else the first 32 and the SHA-256 of all. Different values
have different ones, and of the 32 columns that an index can have, all fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.shared.mirror.mirrored import equal
from migrator.model.table import TableSchema

_SHORT_BYTES = 64
_KEPT_BYTES = 32  # and as many of the digest


def of_bytes(schema: TableSchema) -> frozenset[str]:
    """The columns that are held as bytes."""
    return frozenset(column.name for column in schema.columns if column.type in ("string", "binary"))


def short(value: str) -> str:
    """SQL of the short form of bytes."""
    head = f"pg_catalog.substring({value}, 1, {_KEPT_BYTES})"
    return (
        f"(CASE WHEN pg_catalog.octet_length({value}) < {_SHORT_BYTES} THEN {value}"
        f" ELSE {head} || pg_catalog.sha256({value}) END)"
    )


def indexed(schema: TableSchema, names: Sequence[str], values: Sequence[str]) -> list[str]:
    """SQL of what an index over these columns holds, from that of their values."""
    held = of_bytes(schema)
    return [short(value) if name in held else value for name, value in zip(names, values, strict=True)]


def found(schema: TableSchema, names: Sequence[str], ones: Sequence[str], others: Sequence[str]) -> str:
    """Pairwise equality of the values of these columns, to be looked up by an index over them."""
    exact = equal(ones, others)
    if not of_bytes(schema) & set(names):
        return exact
    return f"{equal(indexed(schema, names, ones), indexed(schema, names, others))} AND {exact}"
