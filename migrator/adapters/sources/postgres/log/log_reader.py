"""The source log as transactions: reads pgoutput and delivers what ``migrator.model.event`` describes.

What comes here are whole committed transactions in commit order (``reassembly`` sees to that where the server
streams large ones early). A transaction is handed out in parts of bounded size. After a reconnect the server sends
all whose commit record starts at or after the place asked for; those at or before ``after`` are skipped by order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from migrator.adapters.sources.postgres.chunks.read_view import present_position
from migrator.adapters.sources.postgres.connection import RECOVERY
from migrator.adapters.sources.postgres.log.identity import NameGone
from migrator.adapters.sources.postgres.log.open_part import OpenPart
from migrator.adapters.sources.postgres.log.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    RawRow,
    Relation,
    RowMessage,
    Truncate,
    Update,
    parse,
)
from migrator.adapters.sources.postgres.log.ready_records import ReadyRecords
from migrator.adapters.sources.postgres.log.reassembly import Reassembly
from migrator.adapters.sources.postgres.log.relations import (
    WATERMARK_ID,
    Places,
    RelationFacts,
    Relations,
    catalog_lookup,
    unreadable,
)
from migrator.adapters.sources.postgres.log.replication import (
    KEEPALIVE,
    ReplicationStream,
    wal_end,
)
from migrator.adapters.sources.postgres.log.row_codec import HEAD_BYTES
from migrator.adapters.sources.postgres.log.same_log import (
    LastChange,
    LogProof,
    checked_start,
    durable_lsn,
)
from migrator.adapters.sources.postgres.log.slot import fit_slot
from migrator.adapters.sources.postgres.log.unlogged_changes import UnloggedChanges
from migrator.adapters.sources.postgres.lsn import (
    commit_position,
    format_lsn,
    position_up_to,
    server_name,
)
from migrator.adapters.sources.postgres.open_transactions import await_writers
from migrator.adapters.sources.postgres.publication import missing_for
from migrator.adapters.sources.postgres.reflection import Query, at_one_moment, psycopg_query
from migrator.adapters.sources.postgres.settings import WATERMARK, PostgresSource
from migrator.adapters.sources.postgres.watched import BriefConnection, SilentSource, within
from migrator.connections.postgres.marks import APPLIED
from migrator.connections.same_server import SameServer
from migrator.errors import ConnectionFailed, MigratorError, ReplacedError, SchemaError, SourceError
from migrator.model.event import (
    LogRecord,
    MarkKind,
    SchemaChange,
    TransactionId,
    TransactionPart,
    WatermarkSeen,
)
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema, needed_in
from migrator.ports.log_notes import LogNotes

_OPENING = "the source log can't be opened"
_CATALOG = "the source's catalog can't be read"
_LOOK_EVERY_S = 10.0
_LOOK_AGAIN_S = 0.5
_BACK_S = 10.0
"""Time in which a table that was renamed away may come back, or another take its name."""
_FINISH_S = 5.0
_PROOF_S, _ASK_AGAIN_S = 10.0, 0.02
_MARK_KINDS = frozenset(kind.value for kind in MarkKind)
_ROW_MESSAGES = (Insert, Update, Delete)
_MESSAGES_AT_ONCE = 2000
_MAX_MESSAGES_PER_READ = 200_000
"""A server that sends nothing of interest must not keep ``read`` busy for ever."""

Result = TypeVar("Result")


class PostgresLogReader:
    """Implements ``LogReader``.

    Args:
        source: where to read.
        schemas: row schemas of the captured tables as used so far; a table's present one for a first start.
        step: called with ``log.acknowledge`` and ``log.acknowledged`` around feedback with a newer durable place.
        notes: what an earlier reader has seen of what isn't in the log (see ``unlogged_changes``).
    """

    def __init__(
        self,
        source: PostgresSource,
        schemas: Sequence[TableSchema],
        step: Callable[[str], None] = lambda name: None,
        same: SameServer | None = None,
        notes: LogNotes | None = None,
    ):
        self._source = source
        self._step = step
        self._same = same or SameServer()
        self._notes = notes or LogNotes()
        self._catalog = BriefConnection(source, "catalog")
        self._relations = Relations(schemas, self._look_up)
        self._stream: ReplicationStream | None = None
        self._incoming: Reassembly | None = None
        self._system = ""
        self._standby = False
        self._looked_at = 0.0
        self._unlogged = UnloggedChanges(source, self._notes, resumed=False)
        self._after = Position(-1, "")
        self._proof = LogProof(source, None, 0)
        self._transaction: Begin | None = None
        self._skipping = self._echo = False
        self._records = ReadyRecords()
        self._part = OpenPart()
        self._first_index = 0
        self._partial = False
        self._halt: SchemaError | None = None
        self._replaced: ReplacedError | None = None
        self._gone_since: float | None = None

    def start(self, after: Position | None) -> Position:
        """See ``LogReader.start``; None starts at the slot's confirmed place (its creation, for a new slot)."""
        self.close()
        schemas = self._relations.schemas()
        self._relations = Relations(schemas, self._look_up)
        self._transaction, self._skipping, self._partial = None, False, False
        self._halt = self._replaced = self._gone_since = None
        needed = partial(missing_for, self._source)
        needs, keys = needed_in(schemas), {schema.id: schema.key for schema in schemas}
        self._unlogged = UnloggedChanges(self._source, self._notes, after is not None, needed, needs, keys)
        self._records, self._part, self._first_index = ReadyRecords(), OpenPart(), 0
        stream = within(
            self._source, _OPENING, lambda: ReplicationStream(self._source, self._step), lambda: None
        )
        try:
            log = within(self._source, _OPENING, stream.identify, stream.close)
            self._standby = within(self._source, _OPENING, stream.on_standby, stream.close)
            log = replace(log, timeline=0) if self._standby else log
            self._system = log.label()
            found = within(self._source, _OPENING, stream.slot, stream.close)
            slot = fit_slot(self._source, found, after, self._standby)
            self._look_for_unlogged()
            self._begin_with_tables()
            proof = LogProof(self._source, after, slot.confirmed)
            start = after or proof.naming(position_up_to(slot.confirmed, self._system))
            checked_start(self._source, start, slot.confirmed, log, partial(self._history, stream))
            within(self._source, _OPENING, lambda: stream.begin(proof.begin, slot.confirmed), stream.close)
        except SilentSource:  # the call that was left behind closes it
            self.close()
            raise
        except BaseException:
            stream.close()
            self.close()
            raise
        self._stream = stream
        self._same.reads_log(server_name(log.system, log.timeline or None))
        self._incoming = Reassembly(stream, self._source.spill_folder)
        self._after, self._proof = start, proof
        self._prove()
        # The server sends no keepalive for the place we began at: on an idle server nothing else would ever come.
        self._records.first(start)
        return start

    def _history(self, stream: ReplicationStream, timeline: int) -> str:
        return within(self._source, _OPENING, lambda: stream.history(timeline), stream.close)

    def _prove(self) -> None:
        """Reads on until it is sure that this is the log read before; not for long: what follows can wait for
        it."""
        until = time.monotonic() + _PROOF_S
        while self._proof.open and time.monotonic() < until:
            stream, incoming = self._started()
            if payloads := incoming.take(_MESSAGES_AT_ONCE):
                self._take(payloads)
            elif not stream.wait(0.0):
                stream.tell(ask=True)  # else an idle server says nothing
                stream.wait(_ASK_AGAIN_S)

    def read(self, timeout_s: float) -> list[LogRecord]:
        """See ``LogReader.read``. Also sends feedback, so call it at least every few seconds.

        What was read before a change that can't be carried on is delivered first.
        """
        halt, self._halt = self._halt, None
        if halt is not None:
            raise halt
        try:
            return self._read(timeout_s)
        except SchemaError as error:
            with contextlib.suppress(
                MigratorError
            ):  # what the catalog says more of it is noted for the next reader
                self._look_for_unlogged()
            records = self._records.take()
            if not records:
                raise
            self._halt = error
            return records

    def _read(self, timeout_s: float) -> list[LogRecord]:
        stream, incoming = self._started()
        every_s = _LOOK_AGAIN_S if self._relations.in_doubt() else _LOOK_EVERY_S
        if time.monotonic() - self._looked_at > every_s:
            self._look_beside_log()
            self._relations.check_again()
        until = time.monotonic() + timeout_s
        messages = delivered = held = 0
        while (left := self._source.part_rows - delivered) > 0 and messages < _MAX_MESSAGES_PER_READ:
            if held >= self._source.part_bytes:
                break
            if payloads := incoming.take(min(left, _MESSAGES_AT_ONCE)):
                messages += len(payloads)
                held += sum(map(len, payloads))
                delivered += self._take(payloads)
                continue
            left_s = max(0.0, self._records.wait_until(until) - time.monotonic())
            came = stream.wait(left_s, gather=self._records.only_progress())
            if not came or time.monotonic() >= until:  # what streams in may be far from its commit
                break
        if self._proof.open:
            stream.tell(ask=True)
            return []
        self._unlogged.reached(self._after)
        return self._records.take()

    def acknowledge(self, position: Position) -> None:
        """See ``LogReader.acknowledge``; goes out with the next feedback that ``read`` sends."""
        stream, _ = self._started()
        stream.acknowledge(durable_lsn(position))

    def finish(self) -> None:
        """See ``LogReader.finish``; what the log doesn't explain in a few seconds is left to the next start."""
        self._look_for_unlogged()
        until = time.monotonic() + _FINISH_S
        while self._unlogged.undecided() and time.monotonic() < until:
            self.read(_LOOK_AGAIN_S)

    def close(self) -> None:
        """See ``LogReader.close``; the last acknowledgement is sent before."""
        stream, self._stream = self._stream, None
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.close()
        if stream is not None:
            with contextlib.suppress(ConnectionFailed):  # feedback is a hint: the server keeps its log longer
                stream.tell()
            stream.close()
        self._catalog.close()

    def _started(self) -> tuple[ReplicationStream, Reassembly]:
        if self._stream is None or self._incoming is None:
            raise SourceError("the log reader isn't started", remedy="call start() first")
        return self._stream, self._incoming

    def _look_up(self, relation: Relation, table: TableId, transaction: TransactionId) -> RelationFacts:
        look_up = partial(catalog_lookup, choices=self._source.choices)
        return self._asking_catalog(lambda query: look_up(query)(relation, table, transaction))

    def _begin_with_tables(self) -> None:
        """Checks that the tables which the first look has found are those that the log is read of, and chunks."""
        joined = self._notes.replaced() or self._unlogged.joined()
        self._unlogged.first_seen_at(lambda: self._place().order)
        unlogged = self._unlogged
        places = Places(unlogged.former(), unlogged.left_out())
        columns, noted = unlogged.column_numbers(), unlogged.noted_numbers()
        self._relations.follow(unlogged.numbers(), places, columns, noted)
        self._same.follows(self._unlogged.numbers())
        if joined:
            self._asking_catalog(lambda query: await_writers(query, self._source.server.address))

    def _look_beside_log(self) -> None:
        """Looks while a transaction may be handed out in parts: the rest of it follows before a halt.

        Its rows of the former table are known by that one's number, whoever has the name. A checkpoint inside it
        couldn't be gone on from with another table: the rest is found by counting the captured changes. A table that
        was renamed away may be renamed back: its log is read by its number meanwhile.
        """
        try:
            self._look_for_unlogged()
            self._gone_since = None
        except NameGone:
            now = time.monotonic()
            self._gone_since = self._gone_since or now
            if now - self._gone_since >= _BACK_S:
                raise
            self._looked_at = now - _LOOK_EVERY_S + _LOOK_AGAIN_S
        except ReplacedError as error:
            if not self._partial:
                raise
            self._replaced, self._looked_at = error, time.monotonic()

    def _look_for_unlogged(self) -> None:
        tables = [schema.id for schema in self._relations.schemas()]
        marks = [WATERMARK_ID] if self._source.placement == WATERMARK else []
        look = partial(self._unlogged.look, tables=tables, beside=marks)
        self._catalog.call(_CATALOG, lambda connection: at_one_moment(connection, look))
        if self._unlogged.undecided():
            self._unlogged.decide_at(self._place())
        # A walsender survives a promotion; later connections for chunks would be taken for another server's.
        if self._standby and not self._asking_catalog(lambda query: query(RECOVERY, [])[0][0]):
            raise ConnectionFailed(
                "the standby was promoted", where=self._source.server.address, retryable=True
            )
        self._looked_at = time.monotonic()

    def _place(self) -> Position:
        what = "the source's log position can't be read"
        return self._catalog.call(what, lambda connection: present_position(connection.cursor()))

    def _asking_catalog(self, ask: Callable[[Query], Result]) -> Result:
        return self._catalog.call(_CATALOG, lambda connection: ask(psycopg_query(connection)))

    def _take(self, payloads: Sequence[bytes]) -> int:
        """Takes messages in; returns how many were captured row changes."""
        codecs, part = self._relations.codecs, self._part
        most_rows, most_bytes = self._source.part_rows, self._source.part_bytes
        changes = 0
        for payload in payloads:
            codec = codecs.get(payload[:HEAD_BYTES])
            if codec is None:
                self._message(payload)
            elif self._skipping:
                self._partial = True  # nothing of it is handed out
            else:
                part.add(codec, payload)
                changes += 1
                if part.count >= most_rows or part.bytes >= most_bytes:
                    self._hand_out_part()
        return changes

    def _message(self, payload: bytes) -> None:
        """Takes in what isn't a captured row change."""
        if payload[0] == KEEPALIVE:
            self._keepalive(wal_end(payload))
            return
        message = parse(payload)
        if isinstance(message, Begin):
            self._transaction = message
            self._skipping, self._echo = message.final_lsn <= self._after.order, False
            if not self._skipping:
                self._proof.reached(message.final_lsn)
            self._first_index = 0
            for relation in () if self._skipping else self._relations.entered(message.final_lsn):
                self._see(relation)
        elif isinstance(message, Commit):
            self._commit(message)
        elif isinstance(message, Relation):
            if self._relations.is_other(message, self._begun().final_lsn):
                self._look_beside_log()  # which says more, unless it is over already
                if self._replaced is not None:
                    return  # its rows are all read later on
            self._see(message)
        elif self._skipping:
            self._partial = self._partial or self._relations.touched(message)
        elif isinstance(message, _ROW_MESSAGES):
            self._other_change(message)
        elif isinstance(message, Truncate):
            self._truncate(message)
        elif isinstance(message, LogicalMessage):
            self._own_message(message)

    def _own_message(self, message: LogicalMessage) -> None:
        """A watermark; or the mark that the migration which goes the other way puts before all that it writes."""
        text = message.content.decode(errors="replace")
        if message.prefix == self._source.slot:
            kind, _, token = text.partition(" ")
            self._mark(token, kind)
        elif message.transactional and message.prefix == APPLIED and text == self._source.counterpart:
            self._echo = True

    def _see(self, relation: Relation) -> None:
        begin = self._begun()
        where, passing = self._where(), self._skipping
        schema = self._relations.see(relation, (begin.xid,), begin.final_lsn, where, passing)
        if schema is not None:
            self._hand_out_part()
            self._records.append(SchemaChange(schema))

    def _other_change(self, message: RowMessage) -> None:
        """A row change that no codec reads: our watermark, a table that nobody captures, or one that isn't
        whole."""
        self._relations.check_known(message.relation_oid)
        table = self._relations.captured(message.relation_oid)
        if table is not None:
            raise unreadable(message, table, self._where())
        if self._relations.is_watermark(message.relation_oid) and not isinstance(message, Delete):
            self._watermark(message.new)

    def _watermark(self, new: RawRow) -> None:
        """Columns: migration, token, kind. Other migrations' rows are theirs."""
        migration, token, kind = new[:3]
        if migration == self._source.migration and isinstance(token, str) and isinstance(kind, str):
            self._mark(token, kind)

    def _mark(self, token: str, kind: str) -> None:
        """A watermark in its place. What isn't one of ours means as little as one of an earlier attempt."""
        if kind in _MARK_KINDS:
            self._hand_out_part()
            self._records.append(WatermarkSeen(token, MarkKind(kind)))

    def _truncate(self, message: Truncate) -> None:
        """Tables emptied by one statement, each a change of its own. The log has none of a partition alone."""
        for oid in message.relation_oids:
            self._relations.check_known(oid)
        for table in filter(None, map(self._relations.captured, message.relation_oids)):
            self._part.empties(table.schema)
            self._unlogged.emptied(table.schema.id, self._begun().xid)

    def _commit(self, message: Commit) -> None:
        begin, self._transaction = self._begun(), None
        position = commit_position(begin.final_lsn, message.end_lsn, self._system)
        change = LastChange(begin.xid, begin.final_lsn, begin.committed_at_us)
        if self._skipping:
            self._proof.known(change, captured=self._partial)
        elif self._part.count or self._partial:
            self._proof.changed(change)
            self._after = self._proof.naming(position)
            self._append_part(begin, self._after, last=True)
        else:
            self._after = self._proof.naming(position)
            self._records.progress(self._after)
        self._skipping = self._partial = False
        if self._replaced is not None:
            raise self._replaced

    def _hand_out_part(self) -> None:
        """Hands on what is collected of the open transaction, as a part that isn't the last.

        Its token can't be known before Commit: it is the commit record's start, from which the server would
        send this transaction again.
        """
        if self._part.count:
            begin = self._begun()
            self._append_part(
                begin, commit_position(begin.final_lsn, begin.final_lsn, self._system), last=False
            )
            self._partial = True

    def _append_part(self, begin: Begin, position: Position, *, last: bool) -> None:
        count, runs = self._part.count, self._part.take()
        # A standby's witness decides by the place of the commit record; one of a primary needs the xid only.
        transaction = (begin.xid, begin.final_lsn) if self._standby else (begin.xid,)
        self._records.append(
            TransactionPart(
                transaction, position, begin.committed_at_us, self._first_index, runs, last, self._echo
            )
        )
        self._first_index += count

    def _keepalive(self, wal_end: int) -> None:
        """Inside a transaction a keepalive says nothing: its place may lie before the commit being streamed."""
        position = self._proof.naming(position_up_to(wal_end, self._system))
        if self._transaction is not None:
            return
        self._proof.reached(position.order)
        if position > self._after:
            self._after = position
            self._records.progress(position)

    def _begun(self) -> Begin:
        if self._transaction is None:
            raise SourceError(
                "the log has a row outside of a transaction",
                where=self._source.server.address,
                retryable=True,
            )
        return self._transaction

    def _where(self) -> str:
        place = self._transaction.final_lsn if self._transaction else self._after.order
        return f"position {format_lsn(max(place, 0))}"
