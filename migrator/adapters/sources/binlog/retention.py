"""The time after which a MySQL or MariaDB server gives up its binary log, whoever still needs it."""

from __future__ import annotations

from collections.abc import Callable

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import variable
from migrator.model.position import Position
from migrator.model.retention import Retention

_ANSWER_TIMEOUT_S = 5.0
_REMEDY = (
    "raise binlog_expire_logs_seconds on the source, or help the migration to catch up; purge no binlogs"
)


def binlog_retention(source: BinlogSource, position: Callable[[], Position]) -> Retention:
    """Returns what the server tells now; no rights are needed. Raises ``ConnectionFailed``, ``SourceError``.

    Which of its files are still there only ``SHOW BINARY LOGS`` would tell, which needs more rights than
    reading the log does. MySQL purges by time unless ``binlog_expire_logs_auto_purge`` is off.
    """
    end = position()
    with named_errors(source, "the source's settings can't be read"):
        connection = connect(source, read_timeout_s=_ANSWER_TIMEOUT_S)
        with connection:
            expiry_s = float(variable(connection, "binlog_expire_logs_seconds") or 0)
            purges = variable(connection, "binlog_expire_logs_auto_purge") != "0"
    return Retention(end, expiry_s=expiry_s if expiry_s and purges else None, remedy=_REMEDY)
