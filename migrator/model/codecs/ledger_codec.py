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


def reset_to_json(said: str, before: object = None) -> dict[str, Any]:
    """The document that says who began a reset, and when.

    ``before``: the document that was there. Of it the tables beside targets are kept: nothing else tells whose they
    are.
    """
    besides = besides_of(before)
    return {RESET: said} | ({"besides": besides} if besides else {})


def besides_of(document: object) -> list[str]:
    """Returns the names of the tables beside targets that a ledger's document knows of, also while a reset is under
    way."""
    if not isinstance(document, Mapping):
        return []
    return [*document.get("besides", ()), *(beside for _, beside, _ in document.get("remaps", ()) if beside)]


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
