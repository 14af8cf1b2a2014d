"""The ledger: the target's own record of what has been applied, moved in the same transaction as the rows."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.progress import Checkpoint


@dataclass(frozen=True, slots=True)
class Ledger:
    """The state of the target. ``segment`` 0 and ``checkpoint`` None mean that nothing was applied yet.

    ``segment_id`` says which segment of that number it was (``Manifest.id``); empty where formats before 4
    moved it.
    """

    migration: str
    epoch: int
    segment: int
    checkpoint: Checkpoint | None
    segment_id: str = ""
