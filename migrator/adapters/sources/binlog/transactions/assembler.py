"""Events of the binary log to transactions: the state machine of the log reader, without any I/O.

A transaction is one uninterrupted run in one file: GTID event, then TABLE_MAP and row events, then XID or a COMMIT
statement; or GTID and one statement (DDL). Rows that end with XA PREPARE wait for their outcome (``prepared``).
Nothing that may hold rows is ever passed over: an event that isn't known stops the reader by name and place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto
from itertools import chain

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.events.payload import payload_events
from migrator.adapters.sources.binlog.events.table_map import table_of
from migrator.adapters.sources.binlog.place.track import Opening, Track
from migrator.adapters.sources.binlog.place.undecided import (
    Undecided,
    xid_of_event,
    xid_of_statement,
)
from migrator.adapters.sources.binlog.statements import refusals
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.statement_reader import StatementReader
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind
from migrator.adapters.sources.binlog.tables import compressed
from migrator.adapters.sources.binlog.tables.captured_tables import CapturedTables, LoggedTable
from migrator.adapters.sources.binlog.tables.identity import replaced_by
from migrator.adapters.sources.binlog.tables.row_events import items_of
from migrator.adapters.sources.binlog.transactions.cascade_guard import CascadeGuard
from migrator.adapters.sources.binlog.transactions.event_feed import EventFeed
from migrator.adapters.sources.binlog.transactions.own_rows import OwnRows
from migrator.adapters.sources.binlog.transactions.pending import PendingChanges
from migrator.adapters.sources.binlog.transactions.prepared import (
    HeldTransaction,
    PreparedTransactions,
)
from migrator.adapters.sources.binlog.transactions.whole_transactions import WholeTransactions
from migrator.columnar.emptied import EmptiedCodec
from migrator.model.event import LogProgress, LogRecord, SchemaChange, TransactionPart
from migrator.model.position import Position
from migrator.model.table import TableId

PART_BYTES = 32 << 20
"""Row images after which a transaction is delivered in parts, however few rows they are."""

_OF_TRANSACTIONS = frozenset((events.TABLE_MAP, *events.ROWS, events.XID))


class _State(Enum):
    BETWEEN = auto()
    IN_TRANSACTION = auto()
    LOOKING_BACK = auto()
    """A transaction at or before the start, read again for the undecided ones among them only."""


class TransactionAssembler:
    """Feeds on raw events, yields records.

    Args:
        statements: reads the statements of the log.
        tables: the captured tables.
        own: our own tables, whose rows are marks in the log.
        track: stands where reading begins.
        part_rows: row changes after which a transaction is delivered in parts.
        undecided: what the place that reading begins at remembers of XA transactions.
        guard: watches the tables whose rows cascade to captured ones, where the server doesn't log that.
    """

    def __init__(
        self,
        statements: StatementReader,
        tables: CapturedTables,
        own: OwnRows,
        track: Track,
        part_rows: int,
        undecided: Undecided,
        guard: CascadeGuard,
    ):
        self._statements = statements
        self._tables = tables
        self._own = own
        self._track = track
        self._part_rows = part_rows
        self._feed = EventFeed(self._event, self._ahead, track.place)
        self._whole = WholeTransactions(self._feed.parser, track, tables, own)
        self._state = _State.BETWEEN
        self._maps: dict[int, LoggedTable | None] = {}
        self._mark_maps: dict[int, bytes] = {}
        self._announced: dict[TableId, str] = {}
        self._latest: dict[int, LoggedTable] = {}
        self._prepared = PreparedTransactions(undecided)
        self._guard = guard
        self._records: list[LogRecord] = []
        self._rows = 0
        self._progress = self._beyond_start = self._passing = self._echo = False
        self._clear()
        self._remember()

    def _clear(self) -> None:
        self._opening: Opening | None = None
        self._begun = self._replaying = self._echo = False
        self._held: HeldTransaction | None = None
        self._changes = PendingChanges()
        self._delivered = self._parts = 0
        self._marks: list[LogRecord] = []
        self._savepoints: dict[str, int] = {}

    def position(self) -> Position:
        """The end of the last finished transaction."""
        return self._track.position()

    def only_progress(self) -> bool:
        """Returns whether all that finished since the last ``take`` is of no interest, but for the place reached."""
        return self._progress and not self._records

    def take(self) -> list[LogRecord]:
        """The records finished since the last call."""
        if self._progress and self._state is not _State.IN_TRANSACTION:
            self._records.append(LogProgress(self.position()))
            self._progress = False
        records, self._records, self._rows = self._records, [], 0
        return records

    def feed(self, raw: Sequence[bytes], at: int = 0) -> int:
        """Takes raw events from ``at`` on until ``part_rows`` changes wait; returns the place of the next.

        Raises ``SourceError`` naming what and where.
        """
        return self._feed.feed(raw, at, self._full)

    def _ahead(self, raw: Sequence[bytes], at: int) -> int:
        """Takes transactions that are nothing but rows, as long as nothing else comes; the place behind them."""
        if self._state is not _State.BETWEEN or not self._beyond_start or not self._guard.idle:
            return at
        if self._tables.former.waits(self._track):
            return at
        behind, parts, rows, nothing = self._whole.taken(raw, at, self._latest, self._part_rows - self._rows)
        if behind > at:
            self._records += parts
            self._rows += rows
            self._progress = nothing
        return behind

    def _full(self) -> bool:
        return self._rows >= self._part_rows

    def holds_more(self) -> bool:
        """Returns whether there is an event to handle inside of one that was taken."""
        return self._feed.holds_more()

    def close(self) -> None:
        """Releases what is held."""
        self._prepared.close()

    def _event(self, event: Event) -> None:
        kind = event.type
        if kind in _OF_TRANSACTIONS:
            self._within(event)
        elif kind in events.GTIDS:
            self._begin(event)
        elif kind in (events.QUERY, events.EXECUTE_LOAD_QUERY):
            self._statement(event)
        elif kind in events.CARRY_NOTHING:
            return
        elif kind in (events.ROTATE, events.FORMAT_DESCRIPTION, *events.HEARTBEATS):
            self._file_event(event)
        elif kind == events.TRANSACTION_PAYLOAD:
            self._feed.enter(payload_events(event))
        elif kind in compressed.PLAIN:
            self._event(compressed.plain(event))
        elif kind == events.XA_PREPARE:
            self._xa_prepared(event)
        else:
            self._within(event)

    def _within(self, event: Event) -> None:
        kind = event.type
        if self._held is not None:
            self._hold(self._held, event)
        elif self._state is _State.LOOKING_BACK:
            return
        elif kind == events.TABLE_MAP:
            self._table_map(event.body)
        elif kind in events.ROWS:
            self._row_changes(event)
        elif kind == events.XID:
            self._commit(event)
        elif kind == events.INCIDENT or not event.flags & events.FLAG_IGNORABLE:
            raise refusals.unknown_event(event)

    # -- files and transactions

    def _file_event(self, event: Event) -> None:
        if event.type == events.ROTATE:
            self._track.in_file(events.parse_rotate(event)[0])
        elif event.type == events.FORMAT_DESCRIPTION:
            # table numbers begin anew with a server start, which begins a new file
            self._maps.clear()
            self._mark_maps.clear()
            self._guard.new_file()
            self._statements.file(event)
        else:
            self._progress = True

    def _begin(self, event: Event) -> None:
        if self._state is _State.IN_TRANSACTION:
            raise refusals.broken(
                "a transaction in the log has no end",
                cause=f"another one begins while {self._open().name} is open",
                remedy="the server crashed while it wrote its log; start the migration anew"
                " (docs/how-to/start-anew.md)",
            )
        self._clear()
        opening = self._track.begin(event)
        self._state = _State.LOOKING_BACK if opening.known else _State.IN_TRANSACTION
        self._passing = opening.known and not self._prepared.again
        if not opening.known and self._prepared.looked_back():
            self._remember()
        self._beyond_start = not opening.known
        self._opening, self._begun = opening, opening.begun
        if opening.prepared:
            self._held = self._prepared.begin(self._track.before())

    def _commit(self, event: Event) -> None:
        self._open()
        self._state = _State.BETWEEN
        if self._changes.size or self._parts:
            self._deliver(event, last=True)
        else:
            self._progress = True
        self._track.end(event.end)
        self._records += self._marks
        self._clear()

    def _deliver(self, event: Event, last: bool) -> None:
        opening, position = self._open(), self._track.ending(event.end)
        waiting = self._changes.size
        runs = self._changes.take(waiting if last else self._part_rows)
        at_us = self._track.committed_us or event.timestamp_s * 1_000_000
        part = (opening.id, position, at_us, self._delivered, runs, last, self._echo)
        self._records.append(TransactionPart(*part))
        self._delivered += waiting - self._changes.size
        self._rows += waiting - self._changes.size
        self._parts += 1
        self._progress = False

    def _end_without_rows(self, event: Event) -> None:
        self._changes.forget_from(0)
        self._marks.clear()
        self._commit(event)

    # -- rows

    def _table_map(self, body: bytes) -> None:
        number = self._guard.table_map(body)
        table = self._tables.logged(body, self._track)
        self._maps[number] = table
        if self._mark_maps:
            self._mark_maps.pop(number, None)
        if table is None:
            if self._own.has(body):
                self._mark_maps[number] = body
        elif id(table) not in self._latest:
            self._announce(table)

    def _announce(self, table: LoggedTable) -> None:
        """A layout that isn't the latest of its table comes by."""
        name = table.schema.id
        if self._announced.get(name) != table.version:
            if self._replaying and name in self._announced:
                raise refusals.changed_while_prepared(name)
            self._announced[name] = table.version
            self._records.append(SchemaChange(table.schema))
            self._latest.clear()
        self._latest[id(table)] = table

    def _row_changes(self, event: Event) -> None:
        body = event.body
        number = int.from_bytes(body[:6], "little")
        if number not in self._maps:
            raise refusals.broken("rows of an unknown table", cause=f"no TABLE_MAP for table number {number}")
        table = self._maps[number]
        self._guard.check(event)
        if table is None:
            if number in self._mark_maps:
                self._own_rows(self._mark_maps[number], event)
            return
        pending = self._changes
        pending.add(*items_of(event, table), len(body))
        while pending.size >= self._part_rows or pending.bytes >= PART_BYTES:
            self._deliver(event, last=False)

    def _own_rows(self, table_map: bytes, event: Event) -> None:
        """The mark of the migration that goes the other way comes before all that it writes."""
        marks, echo = self._own.seen(table_map, event)
        self._marks += marks
        self._echo = self._echo or echo

    # -- statements

    def _statement(self, event: Event) -> None:
        # every transaction of MySQL begins with BEGIN
        if self._passing or (self._held is None and events.is_begin(event)):
            self._begun = True
            return
        query, statement = self._statements.read(event, self._tables.captured)
        kind = statement.kind
        if kind is StatementKind.XA_START:
            self._begun, self._held = True, self._prepared.begin(self._track.before())
        elif kind in (StatementKind.XA_COMMIT, StatementKind.XA_ROLLBACK):
            self._xa_decided(event, statement)
        elif self._held is not None:
            self._held.statement(event, refused=bool(statement.refused))
        elif self._state is not _State.LOOKING_BACK:
            self._judged(event, query, statement)

    def _judged(self, event: Event, query: QueryText, statement: Statement) -> None:
        statement = self._tables.judged(statement, self._track)
        kind = statement.kind
        alone = self._opening is not None and not self._begun  # as every statement that commits by itself
        if statement.refused and not (alone and kind is StatementKind.TRUNCATED):
            replaced = replaced_by(statement, self._tables.names())
            raise refusals.refused_statement(statement, replaced, query.text)
        if kind is StatementKind.BEGIN:
            self._begun = True
        elif kind is StatementKind.COMMIT:
            self._commit(event)
        elif kind is StatementKind.ROLLBACK:
            self._forget_to(0, "ROLLBACK")
            self._end_without_rows(event)
        elif kind is StatementKind.SAVEPOINT:
            self._savepoints[statement.name.lower()] = self._delivered + self._changes.size
        elif kind is StatementKind.ROLLBACK_TO:
            savepoint = statement.name.lower()  # the server tells savepoints apart without case
            if savepoint not in self._savepoints:
                raise refusals.broken("a rollback to an unknown savepoint", cause=query.text[:200])
            self._forget_to(self._savepoints[savepoint], "ROLLBACK TO SAVEPOINT")
        elif alone:
            self._guard.follow(query)
            self._remember()
            for table in statement.tables if kind is StatementKind.TRUNCATED else ():
                self._changes.add(EmptiedCodec(self._tables.schema(table)), [None], 0)
            self._commit(event)

    def _forget_to(self, index: int, what: str) -> None:
        """Takes rows back. Only mixed transactions with non-transactional tables have this in their log."""
        if index < self._delivered:
            raise refusals.broken(
                "rows that were delivered already were rolled back",
                cause=f"{what} in a transaction of more than {self._part_rows} rows",
                remedy="raise part_rows, then start the migration anew (docs/how-to/start-anew.md)",
            )
        self._changes.forget_from(index - self._delivered)

    # -- XA: see ``prepared``

    def _hold(self, held: HeldTransaction, event: Event) -> None:
        if event.type == events.TABLE_MAP:
            _, name = table_of(event.body)
            held.table(event, self._tables.captured(name) is not None or self._guard.watches(name))
        elif event.type in events.ROWS:
            held.rows(event)
        elif not event.flags & events.FLAG_IGNORABLE:
            raise refusals.unknown_event(event)

    def _xa_prepared(self, event: Event) -> None:
        """XA PREPARE, or XA COMMIT ... ONE PHASE, which is logged as one."""
        if self._passing:
            return
        held, self._held = self._held, None
        if held is None:
            raise refusals.broken("an XA PREPARE without its transaction", cause="no XA START before it")
        if self._state is not _State.LOOKING_BACK and event.body[0]:
            self._replay(held, event)
        elif event.body[0]:
            held.forget()
        else:
            self._prepared.prepared(xid_of_event(event.body), held)
            self._undecided_changed(event)

    def _xa_decided(self, event: Event, statement: Statement) -> None:
        xid = xid_of_statement(statement.name)
        known, held = self._prepared.knows(xid), self._prepared.take(xid)
        commit = statement.kind is StatementKind.XA_COMMIT and self._state is not _State.LOOKING_BACK
        if commit and not known:
            raise refusals.prepared_before(statement.name)
        if commit and held is not None:
            self._remember()
            self._replay(held, event)
            return
        if held is not None:
            held.forget()
        self._undecided_changed(event)

    def _undecided_changed(self, event: Event) -> None:
        if self._state is not _State.LOOKING_BACK:
            self._remember()
            self._end_without_rows(event)

    def _replay(self, held: HeldTransaction, outcome: Event) -> None:
        """Delivers the rows as changes of the open transaction, which ends with them."""
        self._begun = self._replaying = True
        end = Event(events.XID, outcome.timestamp_s, outcome.server, outcome.end, outcome.flags, b"")
        self._feed.enter(chain(held.replay(outcome), (end,)))

    def _remember(self) -> None:
        self._track.remember(replace(self._prepared.undecided(), cascades=self._guard.digest()))

    def _open(self) -> Opening:
        if self._opening is None:
            raise refusals.broken("rows or a commit outside of a transaction", "no GTID event before them")
        return self._opening
