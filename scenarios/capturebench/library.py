"""mysql-replication's own reader and decoder over a backlog, rows counted and dropped."""

from __future__ import annotations

import time
from typing import Any

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from scenarios.database import Database

_SERVER_ID = 4_000_000_018


class PlainLibrary:
    """Notes where the log ends when it is made; reads from there to the then end of the log."""

    def __init__(self, old: Database):
        self._old = old
        self._file, self._place = self._end()

    def rate(self, changes: int) -> float:
        """Row changes a second, from the first event to the last."""
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
            log_file=self._file,
            log_pos=self._place,
            only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
            only_schemas=[self._old.database],
        )
        rows, started = 0, time.monotonic()
        try:
            for event in stream:
                rows += len(event.rows)
                if rows >= changes:
                    break
        finally:
            stream.close()
        return rows / (time.monotonic() - started)

    def _end(self) -> tuple[str, int]:
        statement = "SHOW BINARY LOG STATUS" if self._old.kind == "mysql" else "SHOW MASTER STATUS"
        connection: Any = self._old.connect(autocommit=True)
        with connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone()
        connection.close()
        return str(row[0]), int(row[1])
