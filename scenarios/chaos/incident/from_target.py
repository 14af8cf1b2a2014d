"""The ledger and the tables of the living target for an incident."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from migrator.config.project import Settings
from migrator.errors import MigratorError
from migrator.model.codecs.codec import checkpoint_to_json
from migrator.wiring.gates.judge import sides
from migrator.wiring.target import peek
from verify.readers.engines import target_reader

Lacks = Callable[[str, str | MigratorError], None]
"""Hears of a part that can't be had, and why."""


def parts(settings: Settings, targets: Sequence[str], anonymise: bool, lacks: Lacks) -> dict[str, str]:
    """The parts of the file that the target tells, as far as it can be reached."""
    try:
        ledger = peek(settings)
    except MigratorError as error:
        lacks("target", error)
        return {}
    found = dict[str, str]()
    if ledger is None:
        lacks("ledger", "the target has none: nothing was applied")
    else:
        checkpoint = checkpoint_to_json(ledger.checkpoint) if ledger.checkpoint is not None else None
        document = {
            "epoch": ledger.epoch,
            "segment": ledger.segment,
            "checkpoint": checkpoint and public(checkpoint, anonymise),
        }
        found["log/ledger.json"] = as_json(document)
    reader, tables = target_reader(sides(settings)[1], settings.name), dict[str, Any]()
    for name in targets:
        try:
            with reader.chunks(name) as chunks:
                tables[name] = {column.name: column.native for column in chunks.columns}
        except MigratorError as error:
            lacks(f"structure of {name}", error)
    return {**found, "structure/new.json": as_json(tables)}


def public(checkpoint: Mapping[str, Any], anonymise: bool) -> Mapping[str, Any]:
    """A checkpoint; under pseudonyms without keys, words of servers, and names of places."""
    if not anonymise:
        return checkpoint
    return {
        "format": checkpoint["format"],
        "order": checkpoint["position"]["order"],
        "dumps": [{"done": one["done"], "rows": one["rows"]} for one in checkpoint["dumps"]],
    }


def as_json(document: object) -> str:
    """A document for people."""
    return json.dumps(document, ensure_ascii=False, indent=2, default=str) + "\n"
