"""JSON form of what only a ledger's checkpoint has: which rows its targets have been given, how mapped, and which of
them are being filled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrator.model.progress import BadRow, Checkpoint, Filling, Mapped, Parent, Phase, Remap, TableIdentity
from migrator.model.table import TableId


def ledgers_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """The fields of all that only a ledger's checkpoint has."""
    return {
        **_fed_to_json(checkpoint),
        **_filling_to_json(checkpoint),
        **_bad_rows_to_json(checkpoint),
        **_remaps_to_json(checkpoint),
    }


def ledgers_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ``Checkpoint``. Inverse of ``ledgers_to_json``."""
    return {
        **_fed_from_json(document),
        **_filling_from_json(document),
        **_bad_rows_from_json(document),
        **_remaps_from_json(document),
    }


def _fed_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing where it isn't known: only a ledger's checkpoint has it."""
    if checkpoint.fed is None:
        return {}
    return {
        "fed": [[name, table.schema, table.name] for name, table in checkpoint.fed],
        "awaited": [[name, table.schema, table.name, request] for name, table, request in checkpoint.awaited],
        **({} if checkpoint.mapped is None else _mapped_to_json(checkpoint.mapped)),
    }


def _fed_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ``Checkpoint``. Inverse of ``_fed_to_json``."""
    if "fed" not in document:
        return {}
    return {
        "fed": tuple((name, TableId(schema, table)) for name, schema, table in document["fed"]),
        "awaited": tuple(
            (name, TableId(schema, table), request) for name, schema, table, request in document["awaited"]
        ),
        "mapped": _mapped_from_json(document) if "mapped" in document else None,
    }


def _filling_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing where no target is being filled."""
    if not checkpoint.filling:
        return {}
    return {"filling": [[one.target, one.pieces, one.rows, one.of_rows] for one in checkpoint.filling]}


def _filling_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ``Checkpoint``. Inverse of ``_filling_to_json``."""
    return {"filling": tuple(Filling(*one) for one in document["filling"])} if "filling" in document else {}


def _bad_rows_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing where no row is set aside. Parents are apart, and which are grains: versions before them read the
    rest."""
    if not checkpoint.bad_rows:
        return {}
    waiting = [(one, one.parent) for one in checkpoint.bad_rows if one.parent is not None]
    parents = [
        [one.target, list(one.key), parent.target, list(parent.columns), list(parent.key), parent.came]
        for one, parent in waiting
    ]
    grains = [[one.target, list(one.columns), list(one.key)] for one in checkpoint.bad_rows if one.grain]
    return {
        **({"parents": parents} if parents else {}),
        **({"grains": grains} if grains else {}),
        "bad_rows": [
            [
                *(one.target, list(one.columns), list(one.key)),
                *(one.position, one.segment, one.reason, one.row, one.dropped),
            ]
            for one in checkpoint.bad_rows
        ],
    }


def _bad_rows_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ``Checkpoint``. Inverse of ``_bad_rows_to_json``."""
    if "bad_rows" not in document:
        return {}
    parents = {
        (target, tuple(key)): Parent(parent, tuple(columns), tuple(values), came)
        for target, key, parent, columns, values, came in document.get("parents", ())
    }
    grains = {(target, tuple(columns), tuple(key)) for target, columns, key in document.get("grains", ())}
    found = (
        BadRow(target, tuple(columns), tuple(key), *rest)
        for target, columns, key, *rest in document["bad_rows"]
    )
    return {
        "bad_rows": tuple(
            replace(one, grain=True)
            if (one.target, one.columns, one.key) in grains
            else replace(one, parent=parents.get((one.target, one.key)))
            for one in found
        )
    }


def _remaps_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Nothing where no next mapping comes into force."""
    if not checkpoint.remaps:
        return {}
    return {"remaps": [[one.target, one.beside, one.phase.value] for one in checkpoint.remaps]}


def _remaps_from_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a ``Checkpoint``. Inverse of ``_remaps_to_json``."""
    found = document.get("remaps", ())
    return {"remaps": tuple(Remap(target, beside, Phase(phase)) for target, beside, phase in found)}


def _mapped_to_json(mapped: Sequence[Mapped]) -> dict[str, Any]:
    """Returns what was added later apart: versions before it read the rest, and say nothing of it."""
    return {
        "mapped": [[one.target, one.schema, one.shape, list(one.columns)] for one in mapped],
        "contents": {one.target: [one.content, one.basis] for one in mapped},
        "outlines": {one.target: json.loads(one.outline) for one in mapped if one.outline},
        "identities": {
            one.target: [one.identity.table, one.identity.ledger]
            for one in mapped
            if one.identity is not None
        },
        "written": [one.target for one in mapped if one.written],
        "holding": [one.target for one in mapped if one.holds],
        "without_rows": [one.target for one in mapped if one.holds is False],
    }


def _mapped_from_json(document: Mapping[str, Any]) -> tuple[Mapped, ...]:
    contents, written = document.get("contents", {}), document.get("written", ())
    stored, outlines = document.get("identities", {}), document.get("outlines", {})
    holds = dict.fromkeys(document.get("holding", ()), True)
    holds |= dict.fromkeys(document.get("without_rows", ()), False)
    identities = {target: TableIdentity(*numbers) for target, numbers in stored.items()}
    found = []
    for target, schema, shape, columns in document["mapped"]:
        content, basis = contents.get(target, ("", ""))
        found.append(
            Mapped(
                target,
                schema,
                shape,
                tuple(columns),
                content,
                basis,
                identities.get(target),
                target in written,
                _text(outlines[target]) if target in outlines else "",
                holds.get(target),
            )
        )
    return tuple(found)


def _text(outline: object) -> str:
    """An outline as ``transforms.analysis.outline`` writes it."""
    return json.dumps(outline, sort_keys=True, separators=(",", ":"))
