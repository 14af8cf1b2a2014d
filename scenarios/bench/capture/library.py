"""mysql-replication's own reader and decoder over a backlog, rows counted and dropped."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from migrator.adapters.sources.binlog.preflight_checks import log_status
from scenarios.database import Database

_SERVER_ID = 4_000_000_018


class PlainLibrary:
    """Notes where the log ends when it is made; reads from there to the then end of the log."""

    def __init__(self, old: Database):
        self._old = old
        self._begin = self._end()

    def rate(self, changes: int) -> float:
        """Row changes a second, from the first event to the last."""
        rows, started = 0, time.monotonic()
        with closing(self.events()) as events:
            for size in events:
                rows += size
                if rows >= changes:
                    break
        return rows / (time.monotonic() - started)

    def events(self) -> Generator[int]:
        """Yields the number of rows of each row event. Waits for more at the end of the log."""
        stream = BinLogStreamReader(
            connection_settings={
                "host": self._old.host,
                "port": self._old.port,
                "user": self._old.user,
                "password": self._old.password,
            },
            server_id=_SERVER_ID,
            is_mariadb=self._old.kind == "mariadb",
            blocking=True,
            resume_stream=True,
            **self._begin,
            only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
            only_schemas=[self._old.database],
        )
        try:
            for event in stream:
                yield len(event.rows)
        finally:
            stream.close()

    def _end(self) -> dict[str, Any]:
        """Returns the log's end; on MariaDB as GTIDs: given a file and an offset, the library reads the log from its
        first event on."""
        mariadb = self._old.kind == "mariadb"
        connection: Any = self._old.connect(autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            cursor.execute("SELECT @@gtid_binlog_pos" if mariadb else log_status(cursor.fetchone()[0]))
            row = cursor.fetchone()
        connection.close()
        return {"auto_position": row[0]} if mariadb else {"log_file": row[0], "log_pos": row[1]}
