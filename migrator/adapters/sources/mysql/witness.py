"""The visibility witness of MySQL: the GTIDs that were visible before the SELECT began.

A GTID enters ``@@gtid_executed`` after its transaction was committed in InnoDB, so whatever the set holds is
in every read view that is opened later. A commit that is in the log but still waits (group commit, semi-sync
AFTER_SYNC) is not in the set. This holds with ``binlog_order_commits`` OFF, too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from migrator.adapters.sources.mysql.gtid_set import GtidSet, Interval
from migrator.adapters.sources.mysql.track import transaction_id
from migrator.model.event import TransactionId


@dataclass(frozen=True, slots=True)
class GtidWitness:
    """Transactions that a read view surely contains: intervals of numbers by UUID and tag, as ids have them."""

    intervals: Mapping[TransactionId, tuple[Interval, ...]]

    def contains(self, transaction: TransactionId) -> bool:
        """Tells whether the transaction was visible before the read view was opened."""
        number = transaction[-1]
        intervals = self.intervals.get(transaction[:-1])
        if not intervals:
            return False
        first, last = intervals[-1]
        if first <= number:  # nearly always: asked of what is new in the log
            return number <= last
        place = bisect_right(intervals, (number, 1 << 64)) - 1
        return place >= 0 and number <= intervals[place][1]


def witness_of(executed: GtidSet) -> GtidWitness:
    """The witness of a read view that is opened after the set was read."""
    return GtidWitness(
        {transaction_id(origin, 0)[:2]: intervals for origin, intervals in executed.intervals.items()}
    )
