"""Events of the binary log to transactions: the state machine of the log reader, without any I/O.

A transaction is one uninterrupted run in one file: GTID event, then TABLE_MAP and row events, then XID or a COMMIT
statement; or GTID and one statement (DDL). Nothing that may hold rows is ever passed over: an event that isn't known
stops the reader by name and place.
"""

from __future__ import annotations

import struct
from enum import Enum, auto

from migrator.binlog import events
from migrator.binlog.captured_tables import CapturedTables, LoggedTable
from migrator.binlog.events import Event, EventParser
from migrator.binlog.payload import payload_events
from migrator.binlog.statements import Statement, StatementKind, judge
from migrator.binlog.track import Opening, Track
from migrator.binlog.watermark import WatermarkTable
from migrator.errors import GapError, MigratorError, SchemaError, SourceError
from migrator.model.event import (
    LogProgress,
    LogRecord,
    Operation,
    RowChange,
    SchemaChange,
    TransactionPart,
)
from migrator.model.position import Position

PART_BYTES = 32 << 20
"""Row images after which a transaction is delivered in parts, however few rows they are."""


class _State(Enum):
    BETWEEN = auto()
    IN_TRANSACTION = auto()
    SKIPPING = auto()
    """A transaction at or before the start."""


class TransactionAssembler:
    """Feeds on raw events, yields records.

    Args:
        database: the migrated database.
        tables: the captured tables.
        watermarks: the watermark table, when that placement is configured.
        track: stands where reading begins.
        part_rows: row changes after which a transaction is delivered in parts.
        logs_cascades: whether the server logs the rows that foreign keys cascade to.
    """

    def __init__(
        self,
        database: str,
        tables: CapturedTables,
        watermarks: WatermarkTable | None,
        track: Track,
        part_rows: int,
        logs_cascades: bool = False,
    ):
        self._database = database
        self._tables = tables
        self._watermarks = watermarks
        self._track = track
        self._part_rows = part_rows
        self._logs_cascades = logs_cascades
        self._parser = EventParser()
        self._state = _State.BETWEEN
        self._maps: dict[int, LoggedTable | None] = {}
        self._mark_maps: dict[int, bytes] = {}
        self._announced: dict[object, str] = {}
        self._foreign_xa: set[str] = set()
        self._records: list[LogRecord] = []
        self._progress = False
        self._rows = 0
        self._clear()

    def _clear(self) -> None:
        self._opening: Opening | None = None
        self._begun = False
        self._xa = False
        self._changes: list[RowChange] = []
        self._delivered = 0
        self._parts = 0
        self._bytes = 0
        self._marks: list[LogRecord] = []
        self._savepoints: dict[str, int] = {}

    @property
    def rows(self) -> int:
        """Row changes waiting in finished records."""
        return self._rows

    def position(self) -> Position:
        """The end of the last finished transaction."""
        return self._track.position()

    def take(self) -> list[LogRecord]:
        """The records finished since the last call."""
        if self._progress and self._state is not _State.IN_TRANSACTION:
            self._records.append(LogProgress(self.position()))
            self._progress = False
        records, self._records, self._rows = self._records, [], 0
        return records

    def feed(self, raw: bytes) -> None:
        """Takes one raw event. Raises ``SourceError`` naming what and where."""
        event = self._parser.parse(raw)
        try:
            self._event(event)
        except (IndexError, KeyError, ValueError, struct.error) as error:
            raise self._error(
                f"an event of type {event.type} can't be decoded",
                cause=f"{type(error).__name__}: {error}",
                remedy="correct the value in the source, or leave the table out of the migration",
            ) from error
        except MigratorError as error:
            if self._track.place() not in error.where:
                error.where = "; ".join(filter(None, (error.where, f"after {self._track.place()}")))
            raise

    def _event(self, event: Event) -> None:
        kind = event.type
        if kind in (events.ROTATE, events.FORMAT_DESCRIPTION, *events.HEARTBEATS):
            self._file_event(event)
        elif kind in events.GTIDS:
            self._begin(event)
        elif self._state is _State.SKIPPING or kind in events.CARRY_NOTHING:
            return
        elif kind == events.TABLE_MAP:
            self._table_map(event.body)
        elif kind in events.WRITE_ROWS or kind in events.UPDATE_ROWS or kind in events.DELETE_ROWS:
            self._row_changes(event)
        elif kind == events.XID:
            self._commit(event)
        elif kind in (events.QUERY, events.EXECUTE_LOAD_QUERY):
            self._statement(event)
        elif kind == events.XA_PREPARE:
            self._prepared(event)
        elif kind == events.TRANSACTION_PAYLOAD:
            for inner in payload_events(event):
                self._event(inner)
        elif kind == events.INCIDENT:
            raise GapError(
                "the server reports that its log lacks events",
                where=self._track.place(),
                cause="INCIDENT event: a write to the binlog failed",
                remedy="start a new dump",
            )
        elif not event.flags & events.FLAG_IGNORABLE:
            name = events.REFUSED_NAMES.get(kind, f"type {kind}")
            raise self._error(
                "the log holds an event that can't be decoded",
                cause=f"event {name}",
                remedy="turn the option off (log_bin_compress=OFF), then start a new dump",
            )

    # -- files and transactions

    def _file_event(self, event: Event) -> None:
        if event.type == events.ROTATE:
            self._track.in_file(events.parse_rotate(event)[0])
        elif event.type == events.FORMAT_DESCRIPTION:
            # table numbers begin anew with a server start, which begins a new file
            self._maps.clear()
            self._mark_maps.clear()
        else:
            self._progress = True

    def _begin(self, event: Event) -> None:
        if self._state is _State.IN_TRANSACTION:
            raise self._error(
                "a transaction in the log has no end",
                cause=f"another one begins while {self._open().name} is open",
                remedy="the server crashed while it wrote its log; start a new dump",
            )
        self._clear()
        opening = self._track.begin(event)
        if opening is None:
            self._state = _State.SKIPPING
            return
        self._state = _State.IN_TRANSACTION
        self._opening, self._begun, self._xa = opening, opening.begun, opening.prepared

    def _commit(self, event: Event) -> None:
        self._open()
        self._state = _State.BETWEEN
        if self._changes or self._parts:
            self._deliver(event, last=True)
        else:
            self._progress = True
        self._track.end(event.end)
        self._records += self._marks
        self._clear()

    def _deliver(self, event: Event, last: bool) -> None:
        opening, position = self._open(), self._track.ending(event.end)
        changes, self._changes = tuple(self._changes), []
        self._records.append(
            TransactionPart(
                opening.id, position, event.timestamp_s * 1_000_000, self._delivered, changes, last
            )
        )
        self._delivered += len(changes)
        self._rows += len(changes)
        self._parts += 1
        self._progress = False

    def _end_without_rows(self, event: Event) -> None:
        self._changes.clear()
        self._marks.clear()
        self._commit(event)

    # -- rows

    def _table_map(self, body: bytes) -> None:
        number = int.from_bytes(body[:6], "little")
        table = self._tables.logged(body)
        self._maps[number] = table
        self._mark_maps.pop(number, None)
        if table is None and self._watermarks is not None and self._watermarks.is_mine(body):
            self._mark_maps[number] = body
        if table is not None and self._announced.get(table.schema.id) != table.version:
            self._announced[table.schema.id] = table.version
            self._records.append(SchemaChange(table.schema))

    def _row_changes(self, event: Event) -> None:
        body = event.body
        number = int.from_bytes(body[:6], "little")
        if number not in self._maps:
            raise self._error("rows of an unknown table", cause=f"no TABLE_MAP for table number {number}")
        table = self._maps[number]
        if table is None:
            if number in self._mark_maps and self._watermarks is not None:
                self._marks += self._watermarks.seen(self._mark_maps[number], event)
            return
        if self._open().prepared:
            raise self._xa_refused(table)
        at = self._images_at(event, table)
        rows = table.decode(body, at, len(body))
        make, name, add = RowChange, table.schema.id, self._changes.append
        if event.type in events.UPDATE_ROWS:
            if len(rows) % 2:
                raise ValueError("an update has a before image without an after image")
            pairs = iter(rows)
            for before, after in zip(pairs, pairs, strict=True):
                add(make(name, Operation.UPDATE, before, after))
        elif event.type in events.WRITE_ROWS:
            self._changes += [make(name, Operation.INSERT, None, row) for row in rows]
        else:
            self._changes += [make(name, Operation.DELETE, row, None) for row in rows]
        self._bytes += len(body)
        while len(self._changes) >= self._part_rows or self._bytes >= PART_BYTES:
            if self._xa:
                raise self._xa_refused(table)
            rest = self._changes[self._part_rows :]
            del self._changes[self._part_rows :]
            self._deliver(event, last=False)
            self._changes, self._bytes = rest, 0

    def _images_at(self, event: Event, table: LoggedTable) -> int:
        """Where the rows begin. Raises ``SourceError`` unless every column is present."""
        body, at = event.body, 8
        if event.type in events.ROWS_V2:
            at += int.from_bytes(body[8:10], "little")
        columns = body[at]
        at += 1
        if columns >= 251:
            columns, at = int.from_bytes(body[at : at + 2], "little"), at + 2
        width = (columns + 7) // 8
        images = 2 if event.type in events.UPDATE_ROWS else 1
        every = (1 << columns) - 1
        for image in range(images):
            present = int.from_bytes(body[at + image * width : at + (image + 1) * width], "little")
            if present & every != every or columns != table.columns:
                raise self._error(
                    "a row image in the log is not complete",
                    cause="the session wrote with binlog_row_image other than FULL",
                    remedy="SET GLOBAL binlog_row_image = 'FULL', reconnect the writers, then start a new dump",
                    table=table,
                )
        return at + images * width

    # -- statements and XA

    def _statement(self, event: Event) -> None:
        query = events.parse_query(event)
        statement = judge(query, self._database, self._tables.captured, self._logs_cascades)
        if statement.refused:
            raise self._refused(statement, query.text)
        kind = statement.kind
        if kind in (StatementKind.BEGIN, StatementKind.XA_START):
            self._begun, self._xa = True, self._xa or kind is StatementKind.XA_START
        elif kind is StatementKind.COMMIT:
            self._commit(event)
        elif kind is StatementKind.ROLLBACK:
            self._forget_to(0, "ROLLBACK")
            self._end_without_rows(event)
        elif kind is StatementKind.SAVEPOINT:
            self._savepoints[statement.name.lower()] = self._delivered + len(self._changes)
        elif kind is StatementKind.ROLLBACK_TO:
            savepoint = statement.name.lower()  # the server tells savepoints apart without case
            if savepoint not in self._savepoints:
                raise self._error("a rollback to an unknown savepoint", cause=query.text[:200])
            self._forget_to(self._savepoints[savepoint], "ROLLBACK TO SAVEPOINT")
        elif kind is StatementKind.XA_COMMIT:
            self._xa_committed(event, statement)
        elif self._opening is not None and not self._begun:
            self._commit(event)

    def _forget_to(self, index: int, what: str) -> None:
        """Takes rows back. Only mixed transactions with non-transactional tables have this in their log."""
        if index < self._delivered:
            raise self._error(
                "rows that were delivered already were rolled back",
                cause=f"{what} in a transaction of more than {self._part_rows} rows",
                remedy="raise part_rows, then start a new dump",
            )
        del self._changes[index - self._delivered :]

    def _prepared(self, event: Event) -> None:
        """XA PREPARE: without captured rows it is remembered, so that its XA COMMIT is known to be harmless."""
        if event.body[0]:  # XA COMMIT ... ONE PHASE
            self._xa = False
            self._commit(event)
            return
        if self._changes:
            raise self._xa_refused(None)
        self._foreign_xa.add(_xid_of_event(event.body))
        self._end_without_rows(event)

    def _xa_committed(self, event: Event, statement: Statement) -> None:
        xid = _xid_of_statement(statement.name)
        if self._open().completed or not self._begun:
            if xid not in self._foreign_xa:
                raise self._error(
                    "an XA transaction was committed that was prepared before reading began",
                    cause=f"XA COMMIT {statement.name}",
                    remedy="its rows are not known: start a new dump; XA is not supported yet",
                )
            self._foreign_xa.discard(xid)
        self._commit(event)

    # -- errors

    def _open(self) -> Opening:
        if self._opening is None:
            raise self._error("rows or a commit outside of a transaction", cause="no GTID event before them")
        return self._opening

    def _xa_refused(self, table: LoggedTable | None) -> SourceError:
        return self._error(
            "XA transactions on captured tables are not supported yet",
            cause="the outcome of an XA PREPARE is not known when its rows come by",
            remedy="let the application commit without XA during the migration, then start a new dump",
            table=table,
        )

    def _refused(self, statement: Statement, text: str) -> SourceError:
        error = SchemaError if statement.kind is StatementKind.ALTERED else SourceError
        tables = ", ".join(map(str, statement.tables))
        return error(
            f"the source ran a statement that can't be carried on: {statement.refused}",
            where="; ".join(filter(None, (tables, f"after {self._track.place()}"))),
            cause=f"statement: {' '.join(text.split())[:300]}",
            remedy="start a new dump of the table (the target keeps its last consistent state until then)",
        )

    def _error(
        self, what: str, *, cause: str, remedy: str = "", table: LoggedTable | None = None
    ) -> SourceError:
        where = "; ".join(
            filter(None, (str(table.schema.id) if table else "", f"after {self._track.place()}"))
        )
        return SourceError(what, where=where, cause=cause, remedy=remedy or "start a new dump")


def _xid_of_event(body: bytes) -> str:
    """Format id, gtrid and bqual of an XA_PREPARE event as ``X'..',X'..',n`` lower-cased, as XA COMMIT spells it."""
    format_id, gtrid, bqual = struct.unpack_from("<Iii", body, 1)
    data = body[13 : 13 + gtrid + bqual]
    return f"{data[:gtrid].hex()},{data[gtrid:].hex()},{format_id}"


def _xid_of_statement(text: str) -> str:
    parts = text.replace(" ", "").split(",")
    return ",".join(part[2:-1].lower() if part[:1] in "xX" else part for part in parts)
