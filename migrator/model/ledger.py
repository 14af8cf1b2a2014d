"""The ledger: the target's own record of what has been applied, moved in the same transaction as the rows."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.progress import Checkpoint


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the target holds. ``segment`` 0 and ``checkpoint`` None mean that nothing was applied yet."""

    migration: str
    epoch: int
    segment: int
    checkpoint: Checkpoint | None
