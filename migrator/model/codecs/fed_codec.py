"""JSON form of what only a ledger's checkpoint has: which rows its targets have been given, and how mapped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrator.model.progress import Checkpoint, Mapped
from migrator.model.table import TableId


def fed_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing where it isn't known: only a ledger's checkpoint has it."""
    if checkpoint.fed is None:
        return {}
    return {
        "fed": [[name, table.schema, table.name] for name, table in checkpoint.fed],
        "awaited": [[name, table.schema, table.name, request] for name, table, request in checkpoint.awaited],
        **({} if checkpoint.mapped is None else {"mapped": [_fields(each) for each in checkpoint.mapped]}),
    }


def fed_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ``Checkpoint``. Inverse of ``fed_to_json``."""
    if "fed" not in document:
        return {}
    return {
        "fed": tuple((name, TableId(schema, table)) for name, schema, table in document["fed"]),
        "awaited": tuple(
            (name, TableId(schema, table), request) for name, schema, table, request in document["awaited"]
        ),
        "mapped": tuple(_to_mapped(*each) for each in document["mapped"]) if "mapped" in document else None,
    }


def _fields(mapped: Mapped) -> list[Any]:
    return [mapped.target, mapped.schema, mapped.shape, list(mapped.columns), mapped.content, mapped.basis]


def _to_mapped(
    target: str, schema: str, shape: str, columns: list[str], content: str = "", basis: str = ""
) -> Mapped:
    """Returns a target's entry. Versions before the fingerprints wrote none."""
    return Mapped(target, schema, shape, tuple(columns), content, basis)
