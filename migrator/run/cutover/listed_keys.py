"""A target in front of which the keys are listed that changes write, so that a cut-over can compare just these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from migrator.model.ledger import Ledger
from migrator.ports.changed_keys import UNKNOWN_EPOCH, ChangedKeysWriter
from migrator.ports.mirror import Mirror
from migrator.ports.target import Target, TargetBatch, TargetRows
from migrator.run.passed import PassedOn


class ListingTarget(PassedOn):
    """A ``Target`` that lists the keys of a batch before the batch is applied.

    Args:
        target: what writes.
        keys: the list.
        known: the ledger as it is before it is taken over; None: there is none.
    """

    def __init__(self, target: Target, keys: ChangedKeysWriter, known: Callable[[], Ledger | None]):
        super().__init__(target)
        self._keys, self._known = keys, known
        self._segment = 0

    def open(self, epoch: int) -> Ledger:
        """See the port."""
        known = self._known()
        before, segment = (0, 0) if known is None else (known.epoch, known.segment)
        self._keys.claim(epoch, before)
        ledger = super().open(epoch)
        self._segment = ledger.segment
        # Between the look and the take-over another leader may have applied a batch, under an epoch not seen here.
        follows = before if ledger.segment == segment else UNKNOWN_EPOCH
        self._keys.begin(epoch, ledger.segment, follows)
        return ledger

    def apply(self, batch: TargetBatch) -> None:
        """See the port."""
        joined, self._segment = batch.joined, batch.segment
        for rows in batch.rows:
            self._list(rows, batch.segment)
        if joined is not None:
            batch = replace(batch, joined=lambda mirror: self._listed(joined(mirror), batch.segment))
        super().apply(batch)

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """See the port. A target that is being filled has no verdict yet that its keys could be compared beside."""

        def noted(mirror: Mirror) -> Iterator[TargetRows]:
            for rows in piece(mirror):
                self._keys.unknown(self._segment + 1, rows.table.id.name)
                yield rows

        super().fill(noted)

    def close(self) -> None:
        """See the port."""
        self._keys.close()
        super().close()

    def _listed(self, parts: Iterator[TargetRows], segment: int) -> Iterator[TargetRows]:
        for rows in parts:
            self._list(rows, segment)
            yield rows

    def _list(self, rows: TargetRows, segment: int) -> None:
        """Lists the keys of changes. Rows of dumps, and rows that vanish without their keys, leave keys unknown."""
        name, key = rows.table.id.name, list(rows.table.key)
        if (
            rows.replaces
            or rows.emptied
            or any(part is not None and part.num_rows for part in (rows.chunk, rows.doubted))
        ):
            self._keys.unknown(segment, name)
        for part in (rows.before, rows.after):
            if part is not None and part.num_rows:
                self._keys.note(segment, name, part.select(key))
