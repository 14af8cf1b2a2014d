"""JSON form of the ledger's document (see ``migrator.model.codecs.codec``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrator.errors import HalfResetError
from migrator.model.codecs.codec import Json, checkpoint_from_json, checkpoint_to_json
from migrator.model.progress import Checkpoint

RESET = "reset"
"""The field of a document that stands in a checkpoint's place while a reset is under way; also the act's name in the
history."""


def reset_to_json(said: str) -> dict[str, Any]:
    """The document that says who began a reset, and when."""
    return {RESET: said}


def refuse_reset(document: object, where: str) -> None:
    """Raises ``HalfResetError`` where a ledger's document says that a reset is under way."""
    if isinstance(document, Mapping) and RESET in document:
        raise half_reset(str(document[RESET]), where)


def half_reset(said: str, where: str) -> HalfResetError:
    """The error for a migration of which a part was removed: nobody may go on with the rest."""
    return HalfResetError(
        "a reset of this migration began and isn't finished",
        where=where,
        cause=said,
        remedy="finish it: migrator reset",
    )


def ledger_to_json(checkpoint: Checkpoint, segment_id: str) -> dict[str, Any]:
    """The ledger's document: a checkpoint, and which segment brought it."""
    return checkpoint_to_json(checkpoint) | {"segment_id": segment_id}


def ledger_from_json(document: Json) -> tuple[Checkpoint, str]:
    """Inverse of ``ledger_to_json``. Raises ``FormatError``."""
    return checkpoint_from_json(document), str(document.get("segment_id", ""))
