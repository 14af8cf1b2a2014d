"""Rows set aside in one transaction: what was aside before, what its batch brings, what is taken out at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrator.columnar.bad_rows import StillBad
from migrator.model.progress import BadRow
from migrator.ports.target import Orphan, OrphansAside, TargetBatch


class Aside(StillBad):
    """The rows that the ledger names as set aside once the transaction is committed."""

    def seen(self, batch: TargetBatch) -> TargetBatch:
        """The same batch, whose joined rows are seen when they come."""
        joined = batch.joined
        if joined is None:
            return batch
        return replace(batch, joined=lambda mirror: self.passing(joined(mirror)))

    def noting(self, orphans: OrphansAside | None) -> OrphansAside | None:
        """The same for orphans, whose records are kept; None where they are refused."""
        if orphans is None:
            return None

        def records(found: Sequence[Orphan]) -> tuple[BadRow, ...]:
            noted = orphans.records(found)
            self.taken(noted)
            return noted

        return OrphansAside(orphans.most, records)
