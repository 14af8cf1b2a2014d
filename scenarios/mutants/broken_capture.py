"""Broken variants of capture: chunk reads, core, segments. Each function says which rule it breaks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from migrator.columnar.text_codec import text_runs
from migrator.core.capture import Capture
from migrator.core.dump import DumpPlan
from migrator.core.touched import Stale, TouchedKeys
from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import ChangeRun, MarkKind, TransactionId, TransactionPart
from migrator.model.position import Position
from migrator.model.progress import TableDump
from migrator.model.table import TableSchema
from migrator.run.capture.inputs import ChunkRead
from migrator.run.capture.segment_builder import SegmentBuilder
from migrator.run.capture.source_threads import ChunkPump, hand_over
from migrator.run.capture.steps import CaptureSteps
from migrator.run.failure import Stopping
from scenarios.simulation.setup import Patch
from scenarios.simulation.source import CODECS, SimulatedLogReader

_stale = Capture.stale
_arrived = DumpPlan.arrived
_content = SegmentBuilder.content
_add_part = SegmentBuilder._add_part
_confirm = TouchedKeys.confirm
_note = TouchedKeys.note
_remember = TouchedKeys.__init__
_settle_large = TouchedKeys._settle_large
_start = SimulatedLogReader.start


def _nothing_stale(self: Capture, chunk: Chunk) -> Stale:
    """Chunk rows go out even if the log has newer rows with their keys."""
    return Stale(frozenset(), reread=False)


def _witness_ignored(self: Capture, chunk: Chunk) -> Stale:
    """Uses plain DBLog, also where commits become visible late."""
    return _stale(self, replace(chunk, witness=None))


def _reached_at_once(self: Capture, chunk: Chunk) -> bool:
    """A chunk goes out before the log was read past its read view."""
    return True


def _low_after_select(
    self: ChunkPump, request: ChunkRequest, schema: TableSchema, stopping: Stopping
) -> Iterator[None]:
    """The low watermark is written when the rows are already read."""
    if self._reader is None:
        self._reader = self._make()
    marks = self._marks_for(request)
    chunk = self._reader.read(request, schema)
    yield
    if marks is not None:
        marks.write(request.token, MarkKind.LOW)
        yield
        marks.write(request.token, MarkKind.HIGH)
        yield
    hand_over(self._inputs, ChunkRead(chunk), stopping)


def _confirmed_by_newest(self: TouchedKeys, witnesses: Iterable[Witness]) -> None:
    """Keys are forgotten by the newest witness, though an older read view is still under way."""
    _confirm(self, list(witnesses)[:1])


def _inherits_nothing(
    self: TouchedKeys, max_keys: int = 20_000, inherited: Iterable[TransactionId] = ()
) -> None:
    """Transactions in the gap between log and visibility at a crash are forgotten."""
    _remember(self, max_keys, ())


def _forgets_large(self: TouchedKeys, touched: Any) -> None:
    """A transaction with more keys than are remembered counts as touching none."""
    _settle_large(self, touched)
    touched.tables = {table: keys or set() for table, keys in touched.tables.items()}


def _dumps_as_read(self: DumpPlan) -> tuple[TableDump, ...]:
    """The dump's progress counts chunks as they are read, not as they are emitted."""
    return tuple(
        replace(dump, after=self._reading[job].after, done=self._reading[job].exhausted)
        for job, dump in self._dumps.items()
        if not dump.request
    )


def _grown_range_cut(self: DumpPlan, chunk: Chunk) -> bool:
    """A range of keys that has grown past the row limit since its end was found counts as read."""
    wanted = _arrived(self, chunk)
    for reading in self._reading.values():
        reading.pieces = deque(piece for piece in reading.pieces if piece.asked)
    return wanted


def _as_they_come(self: DumpPlan, chunk: Chunk) -> bool:
    """Chunks of one table go out in the order in which they were read."""
    return self.expects(chunk)


def _never_in_transaction(self: Capture) -> bool:
    """Every segment claims to end on a transaction boundary."""
    return False


def _transactions_reversed(self: SegmentBuilder, *args: Any, **options: Any) -> Any:
    """The transactions of a segment change places."""
    for logged in self._runs.values():
        ends = accumulate(logged.counts)
        pieces = [logged.items[end - count : end] for end, count in zip(ends, logged.counts, strict=True)]
        runs = sorted(
            zip(logged.positions, logged.firsts, logged.counts, pieces, strict=True),
            key=lambda run: -run[0],
        )
        logged.positions = [position for position, *_ in runs]
        logged.firsts = [first for _, first, *_ in runs]
        logged.counts = [count for *_, count, _ in runs]
        logged.items = [item for *_, piece in runs for item in piece]
    return _content(self, *args, **options)


def _moves_by_half(self: SegmentBuilder, part: TransactionPart) -> None:
    """Delivers only the new key of a row whose key changes."""
    changes = []
    for change in part.changes:
        places = self._schemas[change.table].key_indexes()
        before, after = change.before, change.after
        moved = before is not None and after is not None and any(before[at] != after[at] for at in places)
        changes.append(replace(change, before=None) if moved else change)
    _add_part(self, part._replace(runs=text_runs(CODECS, changes)))


def _acknowledged_first(self: CaptureSteps) -> None:
    """The source is told to forget changes that are not durable yet."""
    checkpoint = self._core.checkpoint()
    self.log.acknowledge(checkpoint.position)
    self.log._acknowledge()
    _write(self)


_write = CaptureSteps.write


def _starts_at_log_end(self: SimulatedLogReader, after: Position | None) -> Position:
    """A first start begins at the log's end, though commits there are not visible yet."""
    return _start(self, self._link.source.end() if after is None else after)


def _truncates_forgotten(self: TouchedKeys, transaction: TransactionId, runs: Iterable[ChangeRun]) -> None:
    """A TRUNCATE counts as touching no key."""
    _note(self, transaction, [run for run in runs if not run.empties])


RECONCILIATION_OFF = (Patch(Capture, "stale", _nothing_stale),)
WITNESS_IGNORED = (Patch(Capture, "stale", _witness_ignored),)
HIGH_IGNORED = (Patch(Capture, "_reached", _reached_at_once),)
LOW_AFTER_SELECT = (Patch(ChunkPump, "reading", _low_after_select),)
CONFIRMED_BY_NEWEST = (Patch(TouchedKeys, "confirm", _confirmed_by_newest),)
INHERITS_NOTHING = (Patch(TouchedKeys, "__init__", _inherits_nothing),)
TRUNCATES_FORGOTTEN = (Patch(TouchedKeys, "note", _truncates_forgotten),)
FORGETS_LARGE = (Patch(TouchedKeys, "_settle_large", _forgets_large),)
GROWN_RANGE_CUT = (Patch(DumpPlan, "arrived", _grown_range_cut),)
AS_THEY_COME = (Patch(DumpPlan, "is_head", _as_they_come),)
DUMPS_AS_READ = (Patch(DumpPlan, "dumps", _dumps_as_read),)
NEVER_IN_TRANSACTION = (Patch(Capture, "in_transaction", _never_in_transaction),)
TRANSACTIONS_REVERSED = (Patch(SegmentBuilder, "content", _transactions_reversed),)
MOVES_BY_HALF = (Patch(SegmentBuilder, "_add_part", _moves_by_half),)
ACKNOWLEDGED_FIRST = (Patch(CaptureSteps, "write", _acknowledged_first),)
STARTS_AT_LOG_END = (Patch(SimulatedLogReader, "start", _starts_at_log_end),)
