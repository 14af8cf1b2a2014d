"""The binary log that a MySQL or MariaDB server still has for the migration, and after which time it gives it up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pymysql

from migrator.adapters.sources.binlog.place.undecided import server_mark
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query, variable
from migrator.model.position import Position
from migrator.model.retention import Retention

_ANSWER_TIMEOUT_S = 5.0
_ACCESS_DENIED, _NO_BINARY_LOG = 1227, 1381
_REMEDY = (
    "raise binlog_expire_logs_seconds on the source, or help the migration to catch up; purge no binlogs"
)
_SIZED_REMEDY = (
    "raise binlog_expire_logs_seconds and max_binlog_total_size on the source, or help the migration to catch up;"
    " purge no binlogs"
)


def binlog_retention(
    source: BinlogSource,
    position: Callable[[], Position],
    server_name: Callable[[Any], str],
    captured: Position | None = None,
) -> Retention:
    """Asks the server now. Raises ``ConnectionFailed``, ``SourceError``.

    Settings need no rights. The sizes of its files need more than reading the log does: REPLICATION CLIENT,
    MariaDB: BINLOG MONITOR. Nobody knows how much is kept without it, before something is captured, or until the
    first transaction of another server (a promoted replica) is: files of one name are different files there. MySQL
    purges by time unless ``binlog_expire_logs_auto_purge`` is off; MariaDB from 11.4 on purges by size, too.
    """
    end = position()
    with named_errors(source, "the source's settings can't be read"):
        connection = connect(source, read_timeout_s=_ANSWER_TIMEOUT_S)
        with connection:
            expiry_s = float(variable(connection, "binlog_expire_logs_seconds") or 0)
            purges = variable(connection, "binlog_expire_logs_auto_purge") != "0"
            bound = int(variable(connection, "max_binlog_total_size") or 0) or None
            mark, file, offset = _place(captured)
            here = bool(mark) and mark == server_mark(server_name(connection))
            files = _files(connection) if here else []
    return Retention(
        end,
        kept_bytes=kept_bytes(files, file, offset),
        left_bytes=left_bytes(files, file, offset, bound),
        bound_bytes=bound,
        expiry_s=expiry_s if expiry_s and purges else None,
        remedy=_SIZED_REMEDY if bound else _REMEDY,
    )


def kept_bytes(files: list[tuple[str, int]], file: str, offset: int) -> int | None:
    """Bytes from a place to the end of a log, by its files and their sizes, the oldest first; None: unknown.

    A place in a file that isn't there, or behind its end, was purged, or is of a log that was begun anew.
    """
    names = [name for name, _ in files]
    if file not in names:
        return None
    rest = [size for _, size in files[names.index(file) :]]
    return sum(rest) - offset if offset <= rest[0] else None


def left_bytes(files: list[tuple[str, int]], file: str, offset: int, bound: int | None) -> int | None:
    """Bytes that may be written before the file of a place is purged by size; None: no bound, or unknown.

    Files are purged whole, the oldest first, and never the one that is written.
    """
    kept = kept_bytes(files, file, offset)
    if bound is None or kept is None:
        return None
    return bound - kept - (offset if file != files[-1][0] else 0)


def _files(connection: Any) -> list[tuple[str, int]]:
    """The files of the log, the oldest first; none where the login may not see them."""
    try:
        return [(str(row[0]), int(row[1])) for row in query(connection, "SHOW BINARY LOGS")]
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] in (_ACCESS_DENIED, _NO_BINARY_LOG):
            return []
        raise


def _place(position: Position | None) -> tuple[str, str, int]:
    """The server's mark, file and offset of a position of either engine.

    Nothing is known of one of another kind of source, of an earlier version, or that no log was read for.
    """
    try:
        parts = json.loads(position.token if position is not None else "")
        return str(parts["server"]), str(parts["file"]), int(parts["offset"])
    except (ValueError, KeyError, TypeError):
        return "", "", 0
