"""The visibility witness of MariaDB: where in the binary log a consistent snapshot stands.

``START TRANSACTION WITH CONSISTENT SNAPSHOT`` takes the read view and ``binlog_snapshot_file/position`` under the
lock that orders commits, so the read view holds exactly the transactions that end at or before that place. A commit
that is in the log but still waits (group commit, semi-sync AFTER_SYNC) is past it and invisible: exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrator.adapters.mariadb.position import file_number
from migrator.binlog.sql import query
from migrator.errors import SourceError
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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where in the log an open read view stands."""

    file: str
    position: int

    def witness(self) -> BinlogWitness:
        """The witness of this read view."""
        return BinlogWitness(file_number(self.file), self.position)


def begin_snapshot(connection: Any) -> Snapshot:
    """Opens a consistent snapshot in a session of REPEATABLE READ. Raises ``SourceError`` without a binary log."""
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    status = dict(query(connection, "SHOW STATUS LIKE 'binlog\\_snapshot\\_%'"))
    place = {name.lower(): value for name, value in status.items()}
    file = str(place.get("binlog_snapshot_file") or "")
    if not file:
        raise SourceError(
            "the server doesn't say where its snapshot stands in the log",
            cause="binlog_snapshot_file is empty",
            remedy="turn the binary log on (log_bin)",
        )
    return Snapshot(file, int(place["binlog_snapshot_position"]))
