"""The visibility witness of MariaDB: where in the binary log a consistent snapshot stands.

``START TRANSACTION WITH CONSISTENT SNAPSHOT`` takes the read view and ``binlog_snapshot_file/position`` under the
lock that orders commits, so the read view holds exactly the transactions that end at or before that place. A commit
that is in the log but still waits (group commit, semi-sync AFTER_SYNC) is past it and invisible: exact.

XA COMMIT doesn't take part in that lock:

1. XA COMMIT of X is written to the log; the place that snapshots are told moves past it;
2. a snapshot is taken: it stands past X, and its read view doesn't have X, because
3. only now does InnoDB commit X.

Until 3 the server lists X in XA RECOVER. So X counts as contained only if its XA COMMIT was in the log before XA
RECOVER was asked, XA RECOVER didn't list it, and the snapshot was taken after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.binlog.place.undecided import prepared_now, xid_number
from migrator.adapters.sources.mariadb.position import file_number
from migrator.connections.mysql.sql import query
from migrator.errors import SourceError
from migrator.model.event import TransactionId


@dataclass(frozen=True, slots=True)
class BinlogWitness:
    """A snapshot that stands at ``position`` of binlog file number ``file``.

    Attributes:
        settled: a place (file number and position) before it, at which XA RECOVER was asked.
        prepared: the numbers of the XA transactions that were listed.
    """

    file: int
    position: int
    settled: tuple[int, int] = (0, 0)
    prepared: frozenset[int] = frozenset()

    def contains(self, transaction: TransactionId) -> bool:
        """Tells whether the transaction lies at or before the snapshot's place; of an XA COMMIT: surely.

        A snapshot stands between transactions, never inside one, so every place in a transaction after its
        beginning decides alike; the log reader uses the end of the GTID event, which it knows before the rows.
        """
        file, position, *xa = transaction
        if (file, position) > (self.file, self.position):
            return False
        return not xa or ((file, position) <= self.settled and xa[0] not in self.prepared)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The place in the log where an open read view stands."""

    file: str
    position: int


def take_witness(connection: Any) -> BinlogWitness:
    """Opens a consistent snapshot in a session of REPEATABLE READ and says what it contains.

    Raises ``SourceError`` without a binary log.
    """
    settled = _place(connection)
    prepared = frozenset(map(xid_number, prepared_now(connection) or ()))
    snapshot = begin_snapshot(connection)
    return BinlogWitness(
        file_number(snapshot.file),
        snapshot.position,
        (file_number(settled.file), settled.position),
        prepared,
    )


def begin_snapshot(connection: Any) -> Snapshot:
    """Opens a consistent snapshot in a session of REPEATABLE READ. Raises ``SourceError`` without a binary log."""
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    return _place(connection)


def _place(connection: Any) -> Snapshot:
    """Reads where the open snapshot stands in the log; outside of one, where a snapshot would stand now."""
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
