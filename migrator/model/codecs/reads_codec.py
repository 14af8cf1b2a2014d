"""Kept results of dual reads as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from migrator.model.codecs.codec import check_number, damaged
from migrator.model.cutover.reads import ReadShape

READS_FORMAT = 1


def reads_to_json(shapes: Sequence[ReadShape]) -> dict[str, Any]:
    """The document of all results."""
    return {"format": READS_FORMAT, "shapes": [asdict(shape) for shape in shapes]}


def reads_from_json(document: Mapping[str, Any]) -> tuple[ReadShape, ...]:
    """Inverse of ``reads_to_json``. Raises ``FormatError`` for a newer version's, or one that makes no sense."""
    try:
        check_number("results of dual reads", int(document["format"]), READS_FORMAT)
        return tuple(ReadShape(**shape) for shape in document["shapes"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("results of dual reads", error) from error
