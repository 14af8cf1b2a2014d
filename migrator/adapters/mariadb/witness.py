"""The visibility witness of MariaDB: where in the binary log a consistent snapshot stands.

``START TRANSACTION WITH CONSISTENT SNAPSHOT`` takes the read view and ``binlog_snapshot_file/position`` under the
lock that orders commits, so the read view holds exactly the transactions that end at or before that place. A commit
that is in the log but still waits (group commit, semi-sync AFTER_SYNC) is past it and invisible: exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.event import TransactionId


@dataclass(frozen=True, slots=True)
class BinlogWitness:
    """A snapshot that stands at ``position`` of binlog file number ``file``."""

    file: int
    position: int

    def contains(self, transaction: TransactionId) -> bool:
        """Whether the transaction lies at or before the snapshot's place.

        A snapshot stands between transactions, never inside one, so every place in a transaction after its
        beginning decides alike; the log reader uses the end of the GTID event, which it knows before the rows.
        """
        return tuple(transaction) <= (self.file, self.position)
