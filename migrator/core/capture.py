"""The capture state machine: log records and chunks in, one ordered stream out (DBLog, arXiv 2010.12597,
section 4).

Theory. Let D be the transactions delivered so far (a prefix of the log) and W the transactions that a chunk's read
view contains. A chunk row may go out when both hold for its key:

* everything in W that touched it was delivered (else an older event would follow a newer row). True once the
log was
  read up to ``chunk.high``, a position taken after the SELECT;
* everything in D that touched it is in W (else an older row would follow a newer event). Decided by the witness, or
  by the window between low and high watermark where the engine makes commits visible in log order.

Then the row equals the last delivered state of its key: emitting it is never wrong and never news.

The DBLog step each method implements is listed in docs/explanation/paper-map.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from migrator.core.dump import DumpPlan
from migrator.core.hold import Hold
from migrator.core.partial import rest_of
from migrator.core.passes import Passes
from migrator.core.touched import EVERY_KEY, Stale, TouchedKeys
from migrator.core.windows import Window, Windows
from migrator.errors import SourceError
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import (
    Key,
    LogProgress,
    LogRecord,
    SchemaChange,
    TransactionId,
    TransactionPart,
    WatermarkSeen,
)
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import DumpRequest
from migrator.model.table import TableId, TableSchema


class EmitPart(NamedTuple):
    """Deliver these log events next. A named tuple, as the part is: there is one for each transaction."""

    part: TransactionPart


@dataclass(frozen=True, slots=True)
class EmitChunk:
    """Deliver these chunk rows next; ``rows`` is the chunk without its stale rows."""

    chunk: Chunk
    rows: Any
    kept_rows: int
    dump: TableDump


@dataclass(frozen=True, slots=True)
class EmitSchema:
    """A table's row schema that holds from here on."""

    schema: TableSchema


Output = EmitPart | EmitChunk | EmitSchema
DropKeys = Callable[[TableSchema, Any, frozenset[Key]], tuple[Any, int]]
"""``(schema, rows, keys) -> (rows without those keys, how many are left)``; pure."""


class Capture:
    """Reconciles chunks with the log.

    Args:
        checkpoint: where to go on from.
        schemas: row schemas of the captured tables.
        plan: which chunks to read.
        drop_keys: takes rows out of a chunk.
        max_keys: bound of keys remembered per transaction or window.
        has_witness: whether chunks come with a witness. Without one, keys are noted in windows only.
        mirrored: tables of which a mirror has the rows: it follows echoes (``TransactionPart.echo``), too.

    Raises (from its inputs):
        SourceError: the log went backwards (for instance the connection now leads to a lagging replica).
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        schemas: Mapping[TableId, TableSchema],
        plan: DumpPlan,
        drop_keys: DropKeys,
        max_keys: int = 20_000,
        has_witness: bool = True,
        mirrored: frozenset[TableId] = frozenset(),
    ):
        self._mirrored = mirrored
        self._schemas = dict(schemas)
        self._plan = plan
        self._drop_keys = drop_keys
        self._has_witness = has_witness
        self._position = checkpoint.position
        self._partial = (checkpoint.partial_order, checkpoint.partial_index)
        self._touched = TouchedKeys(max_keys, checkpoint.unconfirmed)
        self._waiting: list[Chunk] = []
        self._newest_witness: Witness | None = None
        self._bounds: dict[int, Witness | None] = {}
        self._windows = Windows(max_keys)
        self._passes = Passes(checkpoint.passes)
        self._last_changes = dict(checkpoint.last_changes)
        self._hold = Hold()
        self._settles = ""
        self._given_up: list[str] = []
        self._collected = self._begins_batch = self._wants_segment = False

    # -- what the shell asks ------------------------------------------------------------------------------------

    def next_request(self) -> ChunkRequest | None:
        """The next chunk to read, if any; none while it would surely have to be read again."""
        table, newest = self._plan.next_table(), self._newest_witness
        if table is None:
            return None
        if newest is not None and self._touched.must_wait(table, newest):
            return None
        doubting = self._plan.must_hold()
        if doubting:
            if not self._hold.name:
                self._hold.wanted, self._wants_segment = doubting, True
            return None
        request = self._plan.next_request()
        if request is not None:
            # The SELECT has not begun: its witness will contain whatever the newest one does.
            self._bounds[request.id] = self._newest_witness
            if request.token:
                self._windows[request.token] = Window(request.table, set())
        return request

    def checkpoint(self) -> Checkpoint:
        """Returns the checkpoint to resume from if everything that was output so far is durable."""
        order, index = self._partial
        return Checkpoint(
            self._position,
            order,
            index,
            self._touched.unconfirmed(),
            self._plan.dumps(),
            self._plan.requests(),
            self._passes.known(),
            tuple(self._last_changes.items()),
        )

    def schema(self, table: TableId) -> TableSchema:
        """The table's row schema as of the last record."""
        return self._schemas[table]

    def in_transaction(self) -> bool:
        """Tells whether the last output was a part of a transaction with more to come."""
        return self._partial[0] is not None

    def begins_batch(self) -> bool:
        """Tells whether a batch must begin with the segment that is being collected (see ``core.passes``)."""
        return self._begins_batch

    def continues(self) -> bool:
        """Tells whether the batch must go on after the segment that is being collected (see ``core.hold``)."""
        return bool(self._hold.name)

    def settles(self) -> str:
        """The request whose doubts belong to the segment that is being collected, or empty."""
        return self._settles

    def given_up(self) -> list[str]:
        """Requests given up since it was last asked: more than one batch may hold had to go with their chunks."""
        found, self._given_up = self._given_up, []
        return found

    def wants_segment(self) -> bool:
        """Tells whether what was collected should be written now: a chunk waits for a segment of its own."""
        return self._wants_segment and not self.in_transaction()

    # -- inputs -------------------------------------------------------------------------------------------------

    def on_record(self, record: LogRecord) -> list[Output]:
        """The next log record."""
        match record:
            case TransactionPart():
                return self._on_part(record)
            case LogProgress():
                self._advance(record.position)
                return self._place_chunks()
            case SchemaChange():
                self._collected = True
                self._schemas[record.schema.id] = record.schema
                return [EmitSchema(record.schema)]
            case WatermarkSeen():
                return self._place_chunks() if self._windows.mark(record) else []

    def on_bounded(self, request: ChunkRequest) -> None:
        """Takes the end of a chunk that is being read, now that it is known (see ``DumpPlan.bounded``)."""
        self._plan.bounded(request)

    def on_chunk(self, chunk: Chunk) -> list[Output]:
        """A chunk was read. Chunks may come in another order than they were asked for."""
        self._newest_witness = chunk.witness or self._newest_witness
        if not self._plan.arrived(chunk):
            self._forget(chunk)
            return []
        self._bounds[chunk.request.id] = chunk.witness
        self._waiting.append(chunk)
        return self._place_chunks()

    def on_segment(self) -> list[Output]:
        """Everything that was output so far is durable, in segments of its own."""
        self._collected = self._begins_batch = self._wants_segment = False
        self._settles = ""
        if self._hold.wanted and not self.in_transaction():
            self._hold.begin(frozenset(self._touched.unconfirmed()))
            self._plan.hold(self._hold.name)
            self._drop_unwanted()
            self._passes.begin()
            self._begins_batch = True
        return self._place_chunks()

    def on_reconnect(self) -> None:
        """The log is read over a new connection: chunks that were read before and have no place yet are read again.

        Why: where commits are visible before they are durable (``synchronous_commit = off``), this happens: a
            commit; a chunk shows its row; the server crashes and forgets the commit; it runs again; other
            commits move the log past the chunk's high. The chunk would bring a row that no log event ever
            takes away. And the server gives the forgotten commit's id to another transaction, of which no
            witness of before can say anything.
        """
        self._newest_witness = None
        self._bounds = dict.fromkeys(self._bounds)
        self._plan.begin_again()
        self._drop_unwanted()

    def on_requests(self, requests: Sequence[DumpRequest], estimates: Mapping[TableId, int]) -> None:
        """Takes the operators' changed dump requests (see ``DumpPlan.follow``)."""
        self._plan.follow(requests, estimates)
        self._drop_unwanted()

    def on_refusal(self, request: ChunkRequest) -> None:
        """A chunk of a dump request can't be read, now or later: the request is given up."""
        self._bounds.pop(request.id, None)
        self._windows.pop(request.token, None)
        self._plan.over(request)
        self._plan.refuse(request.dump)
        self._drop_unwanted()

    def _drop_unwanted(self) -> None:
        for chunk in [chunk for chunk in self._waiting if not self._plan.expects(chunk)]:
            self._waiting.remove(chunk)
            self._forget(chunk)
        if self._hold.name and not self._plan.open(self._hold.name):
            self._let_go()  # cancelled, or given up

    def _let_go(self) -> None:
        """Ends the hold. A segment must follow, even an empty one: what was held waits for it."""
        self._hold.end()
        self._plan.hold("")
        self._wants_segment = True

    def _held(self, rows: int) -> None:
        """Counts what a hold holds."""
        self._hold.rows += rows
        if self._hold.full():
            self._given_up.append(self._hold.name)
            self._plan.refuse(self._hold.name)
            self._drop_unwanted()

    def on_witness(self, witness: Witness | None) -> None:
        """A witness of now was taken: forget what every read view, present or to come, contains."""
        if witness is None:
            return
        self._newest_witness = witness
        bounds = self._lower_bounds()
        if bounds:
            self._touched.confirm(bounds)

    def _lower_bounds(self) -> list[Witness]:
        """Witnesses such that every read view, present or to come, has what all of them have; none if not known."""
        bounds = [self._newest_witness, *self._bounds.values()]
        known = [bound for bound in bounds if bound is not None]
        return known if len(known) == len(bounds) else []

    def _surely_visible(self, transaction: TransactionId) -> bool:
        """Tells whether an earlier witness shows the transaction, as in a backlog: it needn't be remembered then."""
        newest = self._newest_witness
        if newest is None or not newest.contains(transaction):
            return False
        # A loop would do for all; but this runs for each transaction, and mostly no chunk is being read.
        return not self._bounds or all(
            bound is not None and bound.contains(transaction) for bound in self._bounds.values()
        )

    # -- log side -----------------------------------------------------------------------------------------------

    def _on_part(self, part: TransactionPart) -> list[Output]:
        self._collected = True
        order, index = self._partial
        if order is None and part.position.order <= self._position.order:
            raise SourceError(
                "the source log went backwards",
                where=f"position {part.position.token} after {self._position.token}",
                cause="the connection may lead to another server, or to a replica that lags",
                remedy="point the source settings at the server that was captured so far, and start again",
            )
        stored = index if order == part.position.order else 0
        part = rest_of(part, stored)
        if self._hold.name:
            self._held(part.size())
        if self._has_witness and part.runs and not self._surely_visible(part.id):
            self._touched.note(part.id, part.runs)
        for run in part.runs:
            table = run.codec.schema.id
            if self._windows:
                self._windows.note(table, run)
            if not part.echo:
                self._last_changes[table] = part.committed_at_us
        if part.last:
            self._partial = (None, 0)
            self._advance(part.position)
        else:
            self._partial = (part.position.order, max(stored, part.first_index + part.size()))
        if part.echo:
            part = part._replace(runs=tuple(r for r in part.runs if r.codec.schema.id in self._mirrored))
        return [EmitPart(part), *self._place_chunks()] if self._waiting else [EmitPart(part)]

    def _advance(self, position: Position) -> None:
        if position.order > self._position.order:
            self._position = position

    # -- chunk side ---------------------------------------------------------------------------------------------

    def _place_chunks(self) -> list[Output]:
        """Emits every waiting chunk whose place in the log has been reached."""
        outputs: list[Output] = []
        before = len(self._waiting) + 1
        while len(self._waiting) < before:  # one that goes out may let another go that came before it
            before = len(self._waiting)
            for chunk in list(self._waiting):
                if chunk in self._waiting and self._plan.is_head(chunk) and self._reached(chunk):
                    outputs += self._place(chunk)
        return outputs

    def _reached(self, chunk: Chunk) -> bool:
        window = self._windows.get(chunk.request.token)
        if window is not None:
            return window.high_seen
        return self._position >= chunk.high

    def _place(self, chunk: Chunk) -> list[Output]:
        table = chunk.request.table
        stale = self.stale(chunk)
        schema = self._schemas[table]
        missed = chunk.request.doubting and not self._hold.admits(chunk.request.dump, chunk.witness)
        if stale.reread or missed or chunk.schema_version != schema.version():
            self._plan.read_again(table, chunk.request.dump)
            self._drop_unwanted()
            return []
        if not self._admitted(chunk.request):
            self._wants_segment = not self._hold.name
            return []
        self._collected = True
        rows, kept = self._drop_keys(schema, chunk.rows, stale.keys)
        self._waiting.remove(chunk)
        self._forget(chunk)
        emitted: list[Output] = [
            EmitChunk(chunk, rows, kept, self._plan.emitted(chunk, chunk.row_count - kept))
        ]
        if chunk.request.doubting:
            self._held(kept)
            if self._hold.name and not self._plan.open(self._hold.name):
                self._settles = self._hold.name
                self._let_go()
        return emitted

    def _admitted(self, request: ChunkRequest) -> bool:
        """Tells whether a read's rows may come into the batch being collected, or into one that begins with them."""
        if self._hold.name and request.dump != self._hold.name:
            return (
                False  # another dump's rows of a table would need a batch of their own, and end the held one
            )
        if not self._passes.admits(request.table, request.brings()):
            if self._collected or self.in_transaction():
                return False
            self._passes.begin()
            self._begins_batch = True
        self._passes.note(request.table, request.brings())
        return True

    def stale(self, chunk: Chunk) -> Stale:
        """Returns the rows of a chunk about to be emitted that must not be (the reconciliation)."""
        window = self._windows.get(chunk.request.token)
        if window is not None and window.keys is EVERY_KEY:
            return Stale(frozenset(), reread=True)
        keys = frozenset(window.keys) if window is not None and window.keys else frozenset()
        if chunk.witness is None:
            return Stale(keys, reread=False)
        missed = self._touched.stale(chunk.request.table, chunk.witness)
        return replace(missed, keys=missed.keys | keys)

    def _forget(self, chunk: Chunk) -> None:
        self._bounds.pop(chunk.request.id, None)
        self._windows.pop(chunk.request.token, None)
