"""The binary log that a MySQL or MariaDB server still has for the migration, and after which time it gives it up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pymysql

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query, variable
from migrator.model.position import Position
from migrator.model.retention import Retention

_ANSWER_TIMEOUT_S = 5.0
_ACCESS_DENIED, _NO_BINARY_LOG = 1227, 1381
_REMEDY = (
    "raise binlog_expire_logs_seconds on the source, or help the migration to catch up; purge no binlogs"
)


def binlog_retention(
    source: BinlogSource, position: Callable[[], Position], captured: Position | None = None
) -> Retention:
    """Asks the server now. Raises ``ConnectionFailed``, ``SourceError``.

    Settings need no rights. The sizes of its files need more than reading the log does: REPLICATION CLIENT,
    MariaDB: BINLOG MONITOR. Without it, or before something is captured, nobody knows how much is kept. MySQL
    purges by time unless ``binlog_expire_logs_auto_purge`` is off.
    """
    end = position()
    with named_errors(source, "the source's settings can't be read"):
        connection = connect(source, read_timeout_s=_ANSWER_TIMEOUT_S)
        with connection:
            expiry_s = float(variable(connection, "binlog_expire_logs_seconds") or 0)
            purges = variable(connection, "binlog_expire_logs_auto_purge") != "0"
            kept = None if captured is None else kept_bytes(_files(connection), *_place(captured))
    return Retention(end, kept_bytes=kept, expiry_s=expiry_s if expiry_s and purges else None, remedy=_REMEDY)


def kept_bytes(files: list[tuple[str, int]], file: str, offset: int) -> int | None:
    """Bytes from a place to the end of a log, by its files and their sizes, the oldest first; None: unknown.

    A place in a file that isn't there, or behind its end, is another server's (a replica that was promoted names its
    files by itself), or was purged: GTIDs alone say which.
    """
    names = [name for name, _ in files]
    if file not in names:
        return None
    rest = [size for _, size in files[names.index(file) :]]
    return sum(rest) - offset if offset <= rest[0] else None


def _files(connection: Any) -> list[tuple[str, int]]:
    """The files of the log, the oldest first; none where the login may not see them."""
    try:
        return [(str(row[0]), int(row[1])) for row in query(connection, "SHOW BINARY LOGS")]
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in (_ACCESS_DENIED, _NO_BINARY_LOG):
            return []
        raise


def _place(position: Position) -> tuple[str, int]:
    """File and offset of a position of either engine; nothing is known of one of another kind of source."""
    try:
        parts = json.loads(position.token)
        return str(parts["file"]), int(parts["offset"])
    except (ValueError, KeyError, TypeError):
        return "", 0
