"""JSON form of progress hints (see ``migrator.model.codecs.codec``)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from migrator.model.codecs.codec import (
    FORMAT,
    Json,
    check_format,
    checkpoint_from_json,
    checkpoint_to_json,
    damaged,
    text_from_json,
    text_to_json,
)
from migrator.model.hint import Hint
from migrator.model.observed.observation import Applied, Ended


def hint_to_json(hint: Hint) -> dict[str, Any]:
    """The document of a progress hint."""
    return {
        "format": FORMAT,
        "epoch": hint.epoch,
        "at_us": hint.at_us,
        "segment": hint.segment,
        "event_log_bytes": hint.event_log_bytes,
        "checkpoint": None if hint.checkpoint is None else checkpoint_to_json(hint.checkpoint),
        "note": text_to_json(hint.note),
        "warnings": [text_to_json(warning) for warning in hint.warnings],
        "phase": text_to_json(hint.phase),
        "applied": None if hint.applied is None else asdict(hint.applied),
        "ended": None if hint.ended is None else _ended_to_json(hint.ended),
    }


def hint_of(content: str | bytes) -> Hint | None:
    """Decodes the hint in a file or node; None where it holds no hint of ours. Anybody may have written it."""
    try:
        return hint_from_json(json.loads(content))
    except (ValueError, RecursionError):  # FormatError is a ValueError
        return None


def hint_from_json(document: Json) -> Hint:
    """Inverse of ``hint_to_json``. Raises ``FormatError``."""
    check_format("progress hint", document)
    try:
        checkpoint = document["checkpoint"]
        numbers = [document[name] for name in ("epoch", "at_us", "segment", "event_log_bytes")]
        if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
            raise ValueError("its numbers are whole and count from 0")
        return Hint(
            epoch=document["epoch"],
            at_us=document["at_us"],
            segment=document["segment"],
            event_log_bytes=document["event_log_bytes"],
            checkpoint=None if checkpoint is None else checkpoint_from_json(checkpoint),
            note=text_from_json(document["note"]),
            warnings=tuple(map(text_from_json, document.get("warnings", ()))),
            phase=text_from_json(document.get("phase", "")),
            applied=_applied(document.get("applied")),
            ended=_ended(document.get("ended")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("progress hint", error) from error


def _ended_to_json(ended: Ended) -> dict[str, Any]:
    return {"at_us": ended.at_us, "error": text_to_json(ended.error), "words": text_to_json(ended.words)}


def _applied(document: Any) -> Applied | None:
    return None if document is None else Applied(_whole(document["until_us"]), _whole(document["order"]))


def _ended(document: Any) -> Ended | None:
    if document is None:
        return None
    return Ended(
        _whole(document["at_us"]), text_from_json(document["error"]), text_from_json(document["words"])
    )


def _whole(number: Any) -> int:
    if type(number) is not int:
        raise ValueError("its numbers are whole")
    return number
