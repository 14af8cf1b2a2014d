"""The visibility witness of a chunk: the snapshot its SELECT ran with.

PostgreSQL streams a commit before it becomes visible to a SELECT, so log order alone can't tell whether a
chunk contains a transaction; its snapshot can. Begin carries the top-level xid, and a snapshot's list of
running transactions holds top-level and prepared xids: subtransactions and two-phase commits need nothing
more. Not valid on a standby, whose snapshots list no running transactions; there the place of replay decides
(see ``read_view``).
"""

from __future__ import annotations

from dataclasses import dataclass

from migrator.errors import SourceError
from migrator.model.event import TransactionId

_XID_RANGE = 1 << 32


@dataclass(frozen=True, slots=True)
class ReplayWitness:
    """The witness of a standby: everything whose commit record ends at or before ``replayed`` (an LSN) is visible."""

    replayed: int

    def contains(self, transaction: TransactionId) -> bool:
        """Tells whether the read view shows the transaction, given xid and start of its commit record.

        ``replayed`` is the end of a record, so what starts before it ends there at the latest. A transaction
        that was read from a primary has no place in its id: False, which is never wrong.
        """
        return len(transaction) > 1 and transaction[1] < self.replayed


@dataclass(frozen=True, slots=True)
class SnapshotWitness:
    """A ``pg_current_snapshot()``: 64-bit xids, all below ``xmin`` ended, ``xip`` still running below
    ``xmax``.
    """

    xmin: int
    xmax: int
    xip: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> SnapshotWitness:
        """Reads ``xmin:xmax:xip,xip,...``. Raises SourceError for anything else."""
        try:
            xmin, xmax, running = text.split(":")
            return cls(int(xmin), int(xmax), frozenset(int(xid) for xid in running.split(",") if xid))
        except ValueError as error:
            raise SourceError(f"{text!r} is not a snapshot", cause=str(error)) from error

    def contains(self, transaction: TransactionId) -> bool:
        """Tells whether the snapshot shows the transaction, given the 32-bit xid of its Begin.

        The log gives only the low 32 bits; running transactions lie within 2^31 of each other, so the 64-bit
        xid meant is the one nearest to ``xmax``. True only for transactions that committed: ask for no
        others.
        """
        ahead = (transaction[0] - self.xmax) % _XID_RANGE
        if ahead < _XID_RANGE // 2:
            return False
        xid = self.xmax + ahead - _XID_RANGE
        return xid < self.xmin or xid not in self.xip
