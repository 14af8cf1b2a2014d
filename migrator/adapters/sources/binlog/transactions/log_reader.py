"""The log reader that both engines share: from a position on, transactions in commit order.

It follows the server's GTID replication: the position's GTIDs are announced, the server sends what comes after.
A cut connection is an error that may be retried: the caller starts again after the last position it holds.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from migrator.adapters.sources.binlog.events.events import HEARTBEATS
from migrator.adapters.sources.binlog.place.proof import (
    Proof,
    another_log,
    events_to_end,
    proof_at,
    telling,
    unproven_log,
)
from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.place.undecided import (
    looking_back,
    prepared_now,
    remembering,
    server_mark,
    undecided_of,
)
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.statements.query_event import QueryEvents
from migrator.adapters.sources.binlog.statements.refusals import undecided_at_start
from migrator.adapters.sources.binlog.statements.statement_reader import (
    StatementReader,
    begun_now,
    read_ways,
)
from migrator.adapters.sources.binlog.tables.captured_tables import CapturedTables, CatalogTable
from migrator.adapters.sources.binlog.tables.former_tables import last_replaced, log_ahead, pass_former
from migrator.adapters.sources.binlog.tables.later_names import Renamings, renamings
from migrator.adapters.sources.binlog.tables.noted import NotedChanges, refuse_changed
from migrator.adapters.sources.binlog.transactions.assembler import TransactionAssembler
from migrator.adapters.sources.binlog.transactions.cascade_guard import (
    CascadeGuard,
    ForeignKeys,
    read_cascading,
)
from migrator.adapters.sources.binlog.transactions.own_rows import Decoding, OwnRows
from migrator.adapters.sources.binlog.wire.packet_stream import PacketStream
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import variable
from migrator.connections.same_server import SameServer
from migrator.errors import ConnectionFailed, GapError, MigratorError, SourceError
from migrator.model.event import LogRecord
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema
from migrator.ports.log_notes import LogNotes


@dataclass(frozen=True, slots=True)
class Server:
    """The facts that the server is asked for once, when reading begins.

    Attributes:
        charsets: of the server.
        logs_cascades: whether it logs the rows that foreign keys cascade to.
    """

    charsets: Charsets
    logs_cascades: bool


_LOOK_EVERY_S = 10.0
_TYPE_AT = 4
_PROGRESS_EVERY_S = 0.02
"""Each place told costs more than the reading of a transaction that nobody wants."""
_DECIDED_S = 2.0
"""Time that a first start waits for XA transactions in one attempt; attempts are repeated."""


class BinlogReader(ABC):
    """Reads the binary log. One thread uses it at a time.

    Args:
        source: the server and database.
        tables: the captured tables.
        same: told which server the log is read from, so that chunks are read there, too.
        notes: what earlier readers found of tables that were replaced; kept up to date.
    """

    def __init__(
        self,
        source: BinlogSource,
        tables: Sequence[TableSchema],
        same: SameServer | None = None,
        notes: LogNotes | None = None,
    ):
        self._source = source
        self._notes = LogNotes() if notes is None else notes
        self._same = same or SameServer()
        self._tables = tuple(tables)
        self._stream: PacketStream | None = None
        self._assembler: TransactionAssembler | None = None
        self._raw: list[bytes] = []
        self._at = 0
        self._progress_at = 0.0
        self._failure: MigratorError | None = None
        self._looked_at = 0.0
        self._behind = self._stirred = False

    def start(self, after: Position | None) -> Position:
        """Begins after ``after``, or where the visible transactions end when None; returns the actual start.

        Raises ``GapError`` when the log no longer holds that place, ``ConnectionFailed``.
        """
        self.close()
        connection = connect(self._source)
        with named_errors(self._source, "the source log can't be opened"), connection:
            before = self._visible(connection) if after is None else after
            server = self._ask_server(connection)
            name = self._server_name(connection)
            fold_case = variable(connection, "lower_case_table_names") != "0"
            known = {schema.id: self._read_table(connection, schema.id) for schema in self._tables}
            begin = after if after is not None else self._first_place(connection, before)
            end = self._log_end(connection)
            logged = server.logs_cascades
            found = ForeignKeys() if logged else read_cascading(connection, self._source.server.database)
            ways, begun = read_ways(connection, self._source.server.database), begun_now(connection)
        guard = CascadeGuard(found, list(known), server.charsets, self._dialect, fold_case)
        if after is None:
            begin = remembering(
                begin, replace(undecided_of(json.loads(begin.token)), cascades=guard.digest())
            )
        known_before = undecided_of(json.loads(begin.token))
        guard.go_on(known_before.cascades, self._source.server.address)
        begin = self._proved(begin, end, name)
        track = self._track(begin, end, name)
        catalog = {table: found for table, found in known.items() if found is not None}
        read, noted = self._read_catalog, NotedChanges(self._notes)
        tables = CapturedTables(self._tables, catalog, read, server.charsets, self._dialect, fold_case, noted)

        def statements() -> StatementReader:
            queries = QueryEvents(server.charsets, self._dialect.mariadb)
            return StatementReader(self._source.server.database, queries, server.logs_cascades, ways, begun)

        pass_former(
            self._notes, tables, end.order, lambda: self._last_replaced(begin, end, statements(), tables)
        )
        tables.look_ahead = lambda here: self._renamings(here.position(), statements(), tables)
        refuse_changed(self._notes, self._tables)
        self._stream = self._open_stream(begin)
        self._assembler = TransactionAssembler(
            statements(),
            tables,
            OwnRows(self._source, Decoding(server.charsets, self._dialect, fold_case)),
            track,
            self._source.part_rows,
            known_before,
            guard,
        )
        self._raw = self._stream.take_first()
        self._looked_at, self._behind, self._stirred = time.monotonic(), False, False
        self._same.reads_log(name)
        return begin

    def read(self, timeout_s: float) -> list[LogRecord]:
        """The next records in log order; empty when nothing came within ``timeout_s``.

        At most about ``part_rows`` row changes at once. Raises ``SourceError``, ``SchemaError`` (named, with the
        position), ``GapError``, ``ConnectionFailed`` (retryable: start again after the last position).
        """
        if self._stream is None or self._assembler is None:
            raise SourceError("the log reader was not started", remedy="call start() first")
        deadline = time.monotonic() + timeout_s
        try:
            if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
                self._look()
            while True:
                taken = self._at == len(self._raw) and not self._assembler.holds_more()
                if self._failure is None and taken:
                    self._receive(self._stream, self._assembler.only_progress(), deadline)
                    if not self._raw:
                        return self._taken(self._assembler)
                if self._failure is None:
                    self._failure = self._feed(self._assembler)
                if self._failure is None and self._assembler.only_progress() and self._early(deadline):
                    continue
                records = self._taken(self._assembler)
                if records:
                    self._stirred = True
                    return records
                if self._failure is not None:
                    raise self._failure
        except ConnectionFailed:
            self.close()
            raise

    def _track(self, begin: Position, end: Position, server: str) -> Track:
        track = self._follow(begin, end)
        track.served_by(server_mark(server))
        return track

    def _last_replaced(
        self, begin: Position, end: Position, statements: StatementReader, tables: CapturedTables
    ) -> dict[TableId, int]:
        if not begin < end:
            return {}
        log = events_to_end(self._open_stream(begin), self._source.server.silence_s)
        with closing(log):
            track = self._follow(begin, end)
            return last_replaced(log, track, statements, tables, end.order, self._notes.answered)

    def _renamings(self, begin: Position, statements: StatementReader, tables: CapturedTables) -> Renamings:
        connection = connect(self._source)
        with named_errors(self._source, "the source log's end can't be asked for"), connection:
            end = self._log_end(connection)
        if not begin < end:
            return Renamings()
        with closing(events_to_end(self._open_stream(begin), self._source.server.silence_s)) as log:
            ahead = log_ahead(log, self._follow(begin, end), statements, tables, end.order)
            return renamings(((one, order) for _, one, order in ahead if one is not None), end.order)

    def _proved(self, begin: Position, end: Position, server: str) -> Position:
        """The place, which tells of the last transaction before it. Raises ``GapError``: this is another log.

        A place that doesn't tell as yet (of a first start, or an earlier version's) takes what the log has. So does
        one whose last transaction was purged, though nothing after it, once an operator gave his word.
        """
        self._check_holds(begin, end)
        known = proof_at(begin)
        try:
            found = self._read_again(begin, server)
        except GapError:
            self._open_stream(begin).close()  # raises itself where what comes after the place is gone, too
            if known is not None and not self._source.unproven:
                raise unproven_log(self._source.server.address, known) from None
            known = found = None
        if known is not None and found != known:
            raise another_log(self._source.server.address, known, found)
        return begin if found is None else telling(begin, found)

    def _look(self) -> None:
        """Asks whether the log still leads on from where this reader is: RESET MASTER goes on under new numbers.

        Raises ``GapError``, or ``ConnectionFailed`` where the server has long had more than it sends.
        """
        self._looked_at = time.monotonic()
        if self._assembler is None:
            return
        end = self._end_now()
        if end is None:
            return
        here = self._assembler.position()
        self._check_holds(here, end)
        stands_still = self._behind and not self._stirred
        self._behind, self._stirred = end > here, False
        if stands_still and self._behind:
            raise ConnectionFailed(
                "the server sends nothing of its log, though it has more",
                where=self._source.server.address,
                cause=f"it stands still at {here.token[:200]}",
                remedy="the connection is made again by itself; was the log reset?",
                retryable=True,
            )

    def _end_now(self) -> Position | None:
        """The log's end; None where the server can't be asked: if it is gone, the stream tells."""
        try:
            connection = connect(self._source)
            with named_errors(self._source, "the source log's end can't be asked for"), connection:
                return self._log_end(connection)
        except MigratorError as error:
            if not error.retryable:
                raise
            return None

    def _receive(self, stream: PacketStream, gather: bool, deadline: float) -> None:
        """Waits for events; not long where there is a place to tell already (``gather``)."""
        until = min(deadline, self._progress_at + _PROGRESS_EVERY_S) if gather else deadline
        self._raw, self._at = stream.events(max(0.0, until - time.monotonic()), gather), 0
        self._stirred = self._stirred or any(packet[_TYPE_AT] not in HEARTBEATS for packet in self._raw)

    def _early(self, deadline: float) -> bool:
        """Returns whether the next place may wait for more, so soon after the last one that was told."""
        return time.monotonic() < min(deadline, self._progress_at + _PROGRESS_EVERY_S)

    def _taken(self, assembler: TransactionAssembler) -> list[LogRecord]:
        if assembler.only_progress():
            self._progress_at = time.monotonic()
        return assembler.take()

    def _first_place(self, connection: Any, before: Position) -> Position:
        """Returns where a first start begins: at a place before which all is visible, and no outcome is open.

        1. X is prepared; its rows are in the log before our start, so nobody will ever have them;
        2. the dump reads X's keys as they were, because X is not committed;
        3. XA COMMIT: it is in the log, its rows are not. They would be lost.

        So those prepared by now must be decided first, and the log is read from ``before`` on for the sake of those
        prepared meanwhile. Asked again at the end: MariaDB shows the rows of an XA COMMIT some time after it is in
        the log, but lists it as prepared until then.
        """
        self._await_decided(connection)
        begin = self._visible(connection)
        self._await_decided(connection)
        return looking_back(begin, before)

    def _await_decided(self, connection: Any) -> None:
        """Waits until the XA transactions prepared by now are decided. Raises ``SourceError``, to be tried
        again."""
        waiting = undecided = prepared_now(connection) or frozenset()
        deadline = time.monotonic() + _DECIDED_S
        while undecided:
            if time.monotonic() > deadline:
                raise undecided_at_start(self._source.server.address, undecided)
            time.sleep(0.02)  # there is nothing to wait on: the server doesn't tell of an outcome
            undecided = waiting & (prepared_now(connection) or frozenset())

    def _feed(self, assembler: TransactionAssembler) -> MigratorError | None:
        """Hands events over until ``part_rows`` changes wait; a failure is returned, to be raised after them."""
        try:
            self._at = assembler.feed(self._raw, self._at)
        except MigratorError as error:
            return error
        return None

    def acknowledge(self, position: Position) -> None:
        """Nothing to do: the server keeps its binlogs by its own settings (preflight warns of short ones)."""
        return

    def finish(self) -> None:
        """See ``LogReader.finish``."""
        self._look()

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        if self._stream is not None:
            self._stream.close()
        if self._assembler is not None:
            self._assembler.close()
        self._stream = self._assembler = None
        self._raw, self._at, self._failure = [], 0, None

    def _read_catalog(self, table: TableId) -> CatalogTable | None:
        connection = connect(self._source)
        with named_errors(self._source, "the catalog can't be read"), connection:
            return self._read_table(connection, table)

    # -- the engine's own

    _dialect: Dialect

    @abstractmethod
    def _ask_server(self, connection: Any) -> Server: ...

    @abstractmethod
    def _server_name(self, connection: Any) -> str:
        """Returns the name of this server, in the words of the chunk reader."""

    @abstractmethod
    def _visible(self, connection: Any) -> Position:
        """The last place such that everything at or before it is visible to every later SELECT.

        But for XA transactions, which a server may show later.
        """

    @abstractmethod
    def _log_end(self, connection: Any) -> Position: ...

    @abstractmethod
    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None: ...

    @abstractmethod
    def _follow(self, begin: Position, end: Position) -> Track:
        """A track that stands at ``begin``. Raises ``GapError`` when the server's log ends before it."""

    @abstractmethod
    def _check_holds(self, begin: Position, end: Position) -> None:
        """Raises ``GapError`` when a log that ends at ``end`` doesn't lead to ``begin``."""

    @abstractmethod
    def _read_again(self, begin: Position, server: str) -> Proof | None:
        """Reads what the log has in the place of the last transaction before ``begin``; None: nothing.

        Raises what opening and reading the log raise.
        """

    @abstractmethod
    def _open_stream(self, begin: Position) -> PacketStream: ...
