"""One batch for a dump that decides on target rows: what a repair stands on.

Rows that the target has and the mapping doesn't make must vanish, in order with the log. Removed beside the stream:

1. the judge finds target row 5 that no source row maps to;
2. the source inserts row 5, the pipeline writes it to the target;
3. ``DELETE ... WHERE id = 5`` arrives: a row that the source has is lost.

Removed with a chunk's batch alone it would be no better: the chunk doesn't bring a row that the log touched since
(its event went into an earlier batch), so its absence from the batch would prove nothing. Hence a *mark*:

1. a batch begins, at a place between two transactions (the mark);
2. only now the request's chunks are asked for. Each must contain every transaction delivered before the mark, else
   it is read again; so of the keys that reconciliation drops, the log has the newest row *after* the mark;
3. no batch ends until the last of these chunks went out. The segment that holds it has the doubts.

So that one batch holds, for every source row of the request's scope, the row itself or a newer event of it. A
doubted target row that none of them maps to isn't made by the source at the end of the batch, and vanishes in
its transaction; one that any of them maps to is written by it. A crash, a cancelled request, a leader
replaced: the doubts are in no segment, what was held is an ordinary batch, and nothing is removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.chunk import Witness
from migrator.model.event import TransactionId

MOST_ROWS = 1_000_000
"""Changes and dump rows of a held batch: all of it goes through the driver's memory."""


@dataclass(slots=True)
class Hold:
    """The hold that stands, or is wanted next. One request at a time.

    Attributes:
        name: ``DumpRequest.name`` of the request whose batch is held; empty when none is.
        wanted: of the request that waits for its mark, or empty.
        before: transactions delivered before the mark and not known to be visible then.
        rows: delivered since the mark.
        max_rows: the hold is given up beyond this.
    """

    name: str = ""
    wanted: str = ""
    before: frozenset[TransactionId] = frozenset()
    rows: int = 0
    max_rows: int = MOST_ROWS

    def begin(self, before: frozenset[TransactionId]) -> None:
        """Here is the mark of the request that waits for it."""
        self.name, self.wanted, self.before, self.rows = self.wanted, "", before, 0

    def end(self) -> None:
        """Batches end as they like again."""
        self.name, self.before, self.rows = "", frozenset(), 0

    def full(self) -> bool:
        """Tells whether it holds more rows than it may."""
        return bool(self.name) and self.rows > self.max_rows

    def admits(self, name: str, witness: Witness | None) -> bool:
        """Tells whether a chunk is the held request's and contains all that was delivered before the mark.

        Without a witness its low watermark, written after the mark, says so: there commits are visible in log
        order.
        """
        contains = witness is None or all(witness.contains(transaction) for transaction in self.before)
        return name == self.name and contains
