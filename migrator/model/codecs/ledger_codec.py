"""JSON form of the ledger's document (see ``migrator.model.codecs.codec``)."""

from __future__ import annotations

from typing import Any

from migrator.model.codecs.codec import Json, checkpoint_from_json, checkpoint_to_json
from migrator.model.progress import Checkpoint


def ledger_to_json(checkpoint: Checkpoint, segment_id: str) -> dict[str, Any]:
    """The ledger's document: a checkpoint, and which segment brought it."""
    return checkpoint_to_json(checkpoint) | {"segment_id": segment_id}


def ledger_from_json(document: Json) -> tuple[Checkpoint, str]:
    """Inverse of ``ledger_to_json``. Raises ``FormatError``."""
    return checkpoint_from_json(document), str(document.get("segment_id", ""))
