"""The old database on MariaDB: places in its log are states of GTIDs by domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.errors import VerifyError
from verify.readers.mysql.binlog_source import BinlogSource
from verify.readers.mysql.session import rows_of
from verify.readers.pending import Pending, PendingAnswer, gtid_state, pending_by_gtid
from verify.readers.snapshot import LedgerState, LogPlace


class MariaDBSource(BinlogSource):
    """The old database on MariaDB."""

    def pending(self, ledger: LedgerState, upto: LogPlace, tables: Sequence[str]) -> Pending:
        """Tells whether the log holds anything after the ledger's position; other tables' changes count too."""
        if ledger.order >= upto.order:
            return Pending(PendingAnswer.NO, "the ledger has passed this place in the log")
        return pending_by_gtid(ledger, upto)

    def place_before(self, session: Any) -> LogPlace:
        """Returns the end of the log: what is in it is visible."""
        return _place(session)

    def place_after(self, session: Any) -> LogPlace:
        """Returns the end of the log: what is visible is in it."""
        return _place(session)


def _place(session: Any) -> LogPlace:
    text = str(rows_of(session, "SELECT @@global.gtid_binlog_pos")[0][0] or "")
    state = gtid_state(text)
    if state is None:
        raise VerifyError(
            "the source's GTID state can't be read",
            where="@@global.gtid_binlog_pos",
            cause=f"found {text!r}",
            remedy="turn the binary log on",
        )
    return LogPlace(sum(state.values()), text)
