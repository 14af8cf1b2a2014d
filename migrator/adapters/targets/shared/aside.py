"""Rows set aside in one transaction: what was aside before, what its batch brings, what is taken out at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from migrator.columnar.bad_rows import StillBad
from migrator.model.progress import BadRow
from migrator.ports.mirror import Mirror
from migrator.ports.target import Orphan, OrphansAside, TargetBatch, TargetRows


class Aside(StillBad):
    """The rows that the ledger names as set aside once the transaction is committed."""

    def seen(self, batch: TargetBatch) -> TargetBatch:
        """The same batch, whose joined rows are seen when they come; the mirror says what is set aside."""
        joined = batch.joined
        if joined is None:
            return batch

        def mapped(mirror: Mirror) -> Iterator[TargetRows]:
            mirror.aside = self._held
            return self.passing(joined(mirror))

        return replace(batch, joined=mapped)

    def noting(self, orphans: OrphansAside | None) -> OrphansAside | None:
        """The same for orphans, whose records are kept; None where they are refused."""
        if orphans is None:
            return None

        def records(found: Sequence[Orphan]) -> tuple[BadRow, ...]:
            noted = orphans.records(found)
            self.taken(noted)
            return noted

        return OrphansAside(orphans.most, records)
