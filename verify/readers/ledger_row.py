"""The ledger's row as the judge understands it, whichever engine holds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from migrator.errors import VerifyError
from migrator.model.codecs.codec import FormatError, checkpoint_from_json
from migrator.model.codecs.ledger_codec import refuse_reset
from verify.readers.snapshot import LedgerState


def ledger_state(row: Sequence[Any], where: str) -> LedgerState:
    """Builds the ledger's state from epoch, segment, order, token and the checkpoint's document. Raises
    ``VerifyError``, ``HalfResetError``."""
    epoch, segment, order, token, document = row
    try:
        parsed = json.loads(document) if document is not None else None
        refuse_reset(parsed, where)
        checkpoint = checkpoint_from_json(parsed) if parsed is not None else None
    except FormatError as error:
        raise VerifyError(
            "the target's ledger can't be understood",
            where=where,
            cause=str(error),
            remedy="use the version of migrator that wrote it, or a newer one",
        ) from error
    return LedgerState(int(epoch or 0), int(segment or 0), int(order or 0), str(token or ""), checkpoint)
