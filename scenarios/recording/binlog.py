"""Records the binary log of a MariaDB or MySQL source with mysql-replication's own reader and decoder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import HeartbeatLogEvent, QueryEvent, XAPrepareEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from migrator.errors import ConnectionFailed, VerifyError
from migrator.run.failure import Stopping
from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.row_version import RowShape, RowVersion
from scenarios.recording.source_log import OpenLog, SourceLog
from scenarios.recording.states import rows_of
from scenarios.workloads.base import Tracked

_SERVER_ID = 4_000_000_017
_HEARTBEAT_S = 0.5
_RETRY_S = 0.2
_FATAL_READING_BINLOG = 1236
_EVENTS = (
    HeartbeatLogEvent,
    QueryEvent,
    XAPrepareEvent,
    XidEvent,
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
_TRUNCATE = re.compile(r"\s*TRUNCATE\s+(?:TABLE\s+)?(?:[`\"]?\w+[`\"]?\s*\.\s*)?[`\"]?(\w+)", re.IGNORECASE)
_XA = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\s+(.*?)\s*$", re.IGNORECASE)
_BEGINS = re.compile(r"\s*(?:BEGIN|START\s+TRANSACTION|XA\s+START)\b", re.IGNORECASE)


class Place(Protocol):
    """The place up to which the log was read, in one engine's GTIDs: a value, comparable by ``reaches``."""

    @property
    def order(self) -> int:
        """The number by which the pipeline orders the place."""

    @property
    def text(self) -> str:
        """The place in the server's notation."""

    def reaches(self, goal: Any) -> bool:
        """Returns whether this place includes everything up to the other one."""


class BinlogRecorder:
    """A ``SourceLogRecorder``; a subclass knows its engine's GTIDs.

    The reader stays connected all the time and as far ahead as the log goes, so that a purge takes nothing from it.
    """

    gtid_event: type
    """Class of the event that begins every transaction."""
    is_mariadb = False

    def __init__(self, database: Database, tracked: Sequence[Tracked], clock: RunClock):
        self.log = SourceLog()
        self._database = database
        self._tracked = {sides.old.table: sides for sides in tracked}
        self._clock = clock
        self._stopping = Stopping()
        self._goal: Place | None = None
        self._open: Place | None = None
        self._inside = False
        self._held: dict[str, list[Any]] = {}
        self._shapes: dict[tuple[str, ...], RowShape] = {}

    def start(self) -> None:
        """See ``SourceLogRecorder``. Nobody may write during this call."""
        self._begin_reading(self._tracked)
        for sides in self._tracked.values():
            self.log.initial(sides.table.name, rows_of(self._database, sides.old))
        self._thread = self._stopping.thread("log recorder", self._run)

    def _begin_reading(self, tables: Iterable[str]) -> None:
        """Takes the log's present end for the place to read from, and the columns' names as they are."""
        self._place = self._present()
        self._columns = {table: self._column_names(table) for table in tables}

    def _into(self) -> OpenLog:
        """Returns the log that gets what is read."""
        return self.log

    def stop(self) -> None:
        """See ``SourceLogRecorder``."""
        self._goal = self._present()
        self._thread.join()
        self._stopping.raise_failure()

    def _present(self) -> Place:
        """Returns the place where the server's log ends now."""
        raise AssertionError(f"{type(self).__name__} doesn't say where the log ends")

    def _after(self, event: Any) -> Place | None:
        """The place behind the transaction that this event begins; None if the transaction was read already."""
        raise AssertionError(f"{type(self).__name__} doesn't know its GTIDs")

    def _run(self) -> None:
        while not self._done():
            stream = self._stream()
            try:
                for event in stream:
                    self._take(event, stream)
                    if self._done():
                        return
            except pymysql.err.OperationalError as error:
                if error.args and error.args[0] == _FATAL_READING_BINLOG:
                    raise VerifyError(
                        "the recorder can't read the binary log", cause=str(error.args[-1])
                    ) from error
                self._stopping.wait(_RETRY_S)  # a server that a fault has stopped
            finally:
                self._into().abort()
                self._open = None
                stream.close()

    def _stream(self) -> BinLogStreamReader:
        return BinLogStreamReader(
            connection_settings={
                "host": self._database.host,
                "port": self._database.port,
                "user": self._database.user,
                "password": self._database.password,
                # MySQL's new spelling; the library knows the old one.
                "init_command": f"SET @source_heartbeat_period = {int(_HEARTBEAT_S * 1e9)}",
            },
            server_id=_SERVER_ID,
            blocking=True,
            is_mariadb=self.is_mariadb,
            auto_position=self._place.text,
            only_events=[self.gtid_event, *_EVENTS],
            only_schemas=[self._database.database],
            slave_heartbeat=_HEARTBEAT_S,
            enable_logging=False,
        )

    def _done(self) -> bool:
        """Returns whether everything up to the goal was read; a transaction after it may be open."""
        return self._goal is not None and self._place.reaches(self._goal)

    def _take(self, event: Any, stream: BinLogStreamReader) -> None:
        if isinstance(event, self.gtid_event):
            self._begin(event)
        elif self._open is None or isinstance(event, HeartbeatLogEvent):
            return
        elif isinstance(event, QueryEvent):
            self._statement(event)
        elif isinstance(event, XidEvent):
            self._commit()
        elif isinstance(event, XAPrepareEvent):
            if not event.one_phase:
                xid = f"{event.xid_gtrid.hex()},{event.xid_bqual.hex()},{event.xid_format_id}"
                self._held[xid] = self._into().hold()
            self._commit()
        else:
            self._rows(event)
        stream.auto_position = self._place.text  # where the reader goes on by itself after a cut

    def _begin(self, event: Any) -> None:
        self._into().abort()
        self._open = self._after(event)
        if self._open is None:
            return  # told twice after a reconnection
        self._inside = self._has_end(event)
        self._into().begin(self._open.order, self._clock.at_unix_us(event.timestamp * 1_000_000))

    def _has_end(self, event: Any) -> bool:
        """Returns whether the event itself says that a COMMIT or the like ends what it begins."""
        return False

    def _commit(self) -> None:
        if self._open is not None:
            self._into().commit()
            self._place, self._open = self._open, None

    def _rows(self, event: Any) -> None:
        tracked = self._tracked.get(event.table)
        if tracked is None:
            return
        for row in event.rows:
            before, after = row.get("before_values"), row.get("after_values")
            if isinstance(event, WriteRowsEvent):
                after = row["values"]
            elif isinstance(event, DeleteRowsEvent):
                before = row["values"]
            self.log.change(tracked.table.name, self._version(tracked, before), self._version(tracked, after))

    def _version(self, tracked: Tracked, values: Mapping[str, object] | None) -> RowVersion | None:
        if values is None:
            return None
        names = self._names(tracked.old.table, values)
        shape = self._shapes.get((tracked.old.table, *names))
        if shape is None:
            shape = self._shapes[tracked.old.table, *names] = RowShape(tracked.old, names)
        return shape.version(tuple(values.values()))

    def _names(self, table: str, values: Mapping[str, object]) -> tuple[str, ...]:
        names = tuple(values)
        return self._columns[table] if names[0].startswith("UNKNOWN_COL") else names  # without FULL metadata

    def _statement(self, event: Any) -> None:
        text = event.query if isinstance(event.query, str) else event.query.decode(errors="replace")
        truncated, decided = _TRUNCATE.match(text), _XA.match(text)
        word = text.strip().upper()
        self._inside = self._inside or _BEGINS.match(text) is not None
        if truncated is not None and truncated[1] in self._tracked:
            self.log.truncate(self._tracked[truncated[1]].table.name)
        elif decided is not None:
            held = self._held.pop(_xid(decided[2]), [])
            if decided[1].upper() == "COMMIT":
                self._into().release(held)
            self._commit()
            return
        elif word == "ROLLBACK":
            self._into().hold()
        if word in ("COMMIT", "ROLLBACK") or not self._inside:
            self._commit()

    def _column_names(self, table: str) -> tuple[str, ...]:
        rows = self._query(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
            " ORDER BY ordinal_position",
            self._database.database,
            table,
        )
        return tuple(str(name) for (name,) in rows)

    def _query(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        try:
            connection = self._database.connect()
        except ConnectionFailed as error:
            raise VerifyError(
                "the recorder can't reach the source", where=error.where, cause=error.cause
            ) from error
        try:
            cursor = connection.cursor()
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())
        finally:
            connection.close()


def _xid(text: str) -> str:
    """``X'6131',X'',1`` as the prepare event's parts are written above."""
    parts = [part.strip() for part in text.split(",")]
    plain = [
        part[2:-1].lower() if part[:2].upper() == "X'" else part.strip("'").encode().hex()
        for part in parts[:2]
    ]
    return ",".join([*plain, *([""] if len(parts) < 2 else []), parts[2] if len(parts) > 2 else "1"])
