"""Records the binary log of a MariaDB source with mysql-replication's own reader and decoder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    HeartbeatLogEvent,
    MariadbGtidEvent,
    QueryEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from migrator.errors import ConnectionFailed, VerifyError
from migrator.run.failure import Stopping
from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.row_version import RowShape, RowVersion
from scenarios.recording.source_log import SourceLog
from scenarios.recording.states import rows_of
from scenarios.workloads.base import Tracked

_SERVER_ID = 4_000_000_017
_HEARTBEAT_S = 0.5
_RETRY_S = 0.2
_EVENTS = (
    HeartbeatLogEvent,
    MariadbGtidEvent,
    QueryEvent,
    XAPrepareEvent,
    XidEvent,
    DeleteRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)
_STANDALONE, _PREPARED_XA, _COMPLETED_XA = 1, 64, 128
"""Flags of a GTID event (MariaDB: "GTID_EVENT"): an event that needs no COMMIT; XA PREPARE; XA COMMIT or ROLLBACK."""
_TRUNCATE = re.compile(r"\s*TRUNCATE\s+(?:TABLE\s+)?(?:[`\"]?\w+[`\"]?\s*\.\s*)?[`\"]?(\w+)", re.IGNORECASE)
_XA = re.compile(r"\s*XA\s+(COMMIT|ROLLBACK)\s+(.*?)\s*$", re.IGNORECASE)

GtidState = dict[int, tuple[int, int]]
"""Per domain: server and sequence number of its last transaction."""


class MariaLogRecorder:
    """A ``SourceLogRecorder``. ``order`` is the sum of the GTID state's sequence numbers, as the pipeline has it.

    The reader stays connected all the time and as far ahead as the log goes, so that a purge takes nothing from it.
    """

    def __init__(self, database: Database, tracked: Sequence[Tracked], clock: RunClock):
        self.log = SourceLog()
        self._database = database
        self._tracked = {each.old.table: each for each in tracked}
        self._clock = clock
        self._stopping = Stopping()
        self._goal: GtidState | None = None
        self._state: GtidState = {}
        self._open: GtidState | None = None
        self._flags = 0
        self._held: dict[str, list[tuple[str, int, RowVersion]]] = {}
        self._shapes: dict[tuple[str, ...], RowShape] = {}

    def start(self) -> None:
        """See ``SourceLogRecorder``. Nobody may write during this call."""
        self._state = self._present_state()
        self._columns = {table: self._column_names(table) for table in self._tracked}
        for each in self._tracked.values():
            self.log.initial(each.table.name, rows_of(self._database, each.old))
        self._thread = self._stopping.thread("log recorder", self._run)

    def stop(self) -> None:
        """See ``SourceLogRecorder``."""
        self._goal = self._present_state()
        self._thread.join()
        self._stopping.raise_failure()

    def _run(self) -> None:
        while not self._done():
            stream = self._stream()
            try:
                for event in stream:
                    self._take(event, stream)
                    if self._done():
                        return
            except pymysql.err.OperationalError as error:
                if error.args and error.args[0] == 1236:  # ER_MASTER_FATAL_ERROR_READING_BINLOG
                    raise VerifyError(
                        "the recorder can't read the binary log", cause=str(error.args[-1])
                    ) from error
                self._stopping.wait(_RETRY_S)  # a server that a fault has stopped
            finally:
                self.log.abort()
                self._open = None
                stream.close()

    def _stream(self) -> BinLogStreamReader:
        return BinLogStreamReader(
            connection_settings={
                "host": self._database.host,
                "port": self._database.port,
                "user": self._database.user,
                "password": self._database.password,
            },
            server_id=_SERVER_ID,
            blocking=True,
            is_mariadb=True,
            auto_position=_state_text(self._state),
            only_events=list(_EVENTS),
            only_schemas=[self._database.database],
            slave_heartbeat=_HEARTBEAT_S,
            enable_logging=False,
        )

    def _done(self) -> bool:
        """Whether everything up to the goal was read; a transaction after it may be open."""
        goal = self._goal
        return goal is not None and all(
            self._state.get(domain, (0, 0))[1] >= sequence for domain, (_, sequence) in goal.items()
        )

    def _take(self, event: Any, stream: BinLogStreamReader) -> None:
        if isinstance(event, MariadbGtidEvent):
            self._begin(event)
        elif self._open is None or isinstance(event, HeartbeatLogEvent):
            return
        elif isinstance(event, QueryEvent):
            self._statement(event)
        elif isinstance(event, XidEvent):
            self._commit()
        elif isinstance(event, XAPrepareEvent):
            xid = f"{event.xid_gtrid.hex()},{event.xid_bqual.hex()},{event.xid_format_id}"
            self._held[xid] = self.log.hold()
            self._commit()
        else:
            self._rows(event)
        stream.auto_position = _state_text(self._state)  # where the reader goes on by itself after a cut

    def _begin(self, event: Any) -> None:
        self.log.abort()
        self._open = None
        if event.gtid_seq_no <= self._state.get(event.domain_id, (0, 0))[1]:
            return  # told twice after a reconnection
        self._open = {**self._state, event.domain_id: (event.server_id, event.gtid_seq_no)}
        self._flags = event.flags
        order = sum(sequence for _, sequence in self._open.values())
        self.log.begin(order, self._clock.at_unix_us(event.timestamp * 1_000_000))

    def _commit(self) -> None:
        if self._open is not None:
            self.log.commit()
            self._state, self._open = self._open, None

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
        names = tuple(values)
        if names[0].startswith("UNKNOWN_COL"):  # binlog_row_metadata isn't FULL
            names = self._columns[tracked.old.table]
        shape = self._shapes.get((tracked.old.table, *names))
        if shape is None:
            shape = self._shapes[tracked.old.table, *names] = RowShape(tracked.old, names)
        return shape.version(tuple(values.values()))

    def _statement(self, event: Any) -> None:
        text = event.query if isinstance(event.query, str) else event.query.decode(errors="replace")
        truncated, decided = _TRUNCATE.match(text), _XA.match(text)
        word = text.strip().upper()
        if truncated is not None and truncated[1] in self._tracked:
            self.log.truncate(self._tracked[truncated[1]].table.name)
        elif decided is not None:
            held = self._held.pop(_xid(decided[2]), [])
            if decided[1].upper() == "COMMIT":
                self.log.release(held)
            self._commit()
            return
        elif word == "ROLLBACK":
            self.log.hold()
        if word in ("COMMIT", "ROLLBACK") or self._flags & _STANDALONE:
            self._commit()

    def _present_state(self) -> GtidState:
        ((text,),) = self._query("SELECT @@GLOBAL.gtid_binlog_pos")
        state: GtidState = {}
        for gtid in filter(None, str(text).split(",")):
            domain, server, sequence = map(int, gtid.split("-"))
            state[domain] = (server, sequence)
        return state

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


def _state_text(state: GtidState) -> str:
    return ",".join(f"{domain}-{server}-{sequence}" for domain, (server, sequence) in sorted(state.items()))


def _xid(text: str) -> str:
    """``X'6131',X'',1`` as the prepare event's parts are written above."""
    parts = [part.strip() for part in text.split(",")]
    plain = [
        part[2:-1].lower() if part[:2].upper() == "X'" else part.strip("'").encode().hex()
        for part in parts[:2]
    ]
    return ",".join([*plain, *([""] if len(parts) < 2 else []), parts[2] if len(parts) > 2 else "1"])
