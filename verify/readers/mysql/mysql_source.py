"""The old database on MySQL: places in its log are sets of GTIDs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.errors import VerifyError
from verify.readers.mysql.binlog_source import BinlogSource
from verify.readers.mysql.gtids import Gtids, both, count, gtid_intervals, owned_gtids, text_of
from verify.readers.mysql.session import rows_of
from verify.readers.pending import Pending, PendingAnswer
from verify.readers.snapshot import LedgerState, LogPlace


class MySQLSource(BinlogSource):
    """The old database on MySQL."""

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Sequence[str]) -> Pending:
        """Tells whether the log holds anything that the ledger lacks; other tables' changes count too."""
        applied, found = gtid_intervals(ledger.token), gtid_intervals(upto.state)
        if applied is None or found is None:
            return Pending(PendingAnswer.UNKNOWN, "the ledger's GTID set can't be read")
        if both(applied, found) == applied:
            return Pending(PendingAnswer.NO, "the ledger has all transactions of the source's GTID set")
        return Pending(PendingAnswer.UNKNOWN, f"the source is at {upto.state}, the ledger is behind it")

    def place_before(self, session: Any) -> LogPlace:
        """Returns a place that every later read view contains: a GTID is executed once its transaction is visible."""
        return _place(_executed(session))

    def place_after(self, session: Any) -> LogPlace:
        """At or after all that is visible: a transaction is visible shortly before its GTID is executed.

        Until then its GTID is owned. Owned ones are asked first, so what moves in between is seen in the other set.
        """
        owned = str(rows_of(session, "SELECT @@global.gtid_owned")[0][0] or "")
        return _place(both(owned_gtids(owned), _executed(session)))


def _executed(session: Any) -> Gtids:
    text = str(rows_of(session, "SELECT @@global.gtid_executed")[0][0] or "")
    found = gtid_intervals(text)
    if found is None:
        raise VerifyError(
            "the source's GTID set can't be read",
            where="@@global.gtid_executed",
            cause=f"found {text!r}",
            remedy="turn gtid_mode on",
        )
    return found


def _place(gtids: Gtids) -> LogPlace:
    return LogPlace(count(gtids), text_of(gtids))
