"""Event log -> output: the segments' change events in order, each exactly once, at the output's own pace."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from migrator.columnar.events import NUMBER, order_events
from migrator.errors import ConfigError, EventLogError, MigratorError, OutputError
from migrator.model.table import TableId
from migrator.ports.eventlog import ReaderPlace, Segment, SegmentReader
from migrator.ports.output import EventOutput, Held, SegmentEvents, TableEvents
from migrator.run.failure import Stopping

_WAIT_S = 0.25
_COMMIT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Streamed:
    """The result of streaming: events written, and the segment up to which they are durable."""

    events: int
    segment: int
    cut_bytes: int


class EventStream:
    """Writes what an output lacks.

    Order of one commit: the output is made durable, then the place is stored, and only a stored place lets segments
    go. After a kill in between, the output itself says what it holds beyond the place.

    Args:
        reader: of the event log, with the place of this output.
        output: where the events go.
        tables: names of source tables, ``name`` or ``schema.name``; empty for all.
        from_segment: where a new output begins; None for the first segment.
        commit_s: time between two commits while segments keep coming.
    """

    def __init__(
        self,
        reader: SegmentReader,
        output: EventOutput,
        tables: Sequence[str] = (),
        from_segment: int | None = None,
        commit_s: float = 0.2,
    ) -> None:
        self._reader = reader
        self._output = output
        self._tables = tuple(sorted(set(tables)))
        self._from = from_segment
        self._commit_s = commit_s
        self._events = self._uncommitted_bytes = 0
        self._fresh = False

    def run(self, stopping: Stopping, follow: bool) -> Streamed:
        """Writes until there is no next segment; with ``follow`` until a stop is requested.

        Raises ``EventLogError``, ``OutputError``, and ``ConfigError`` for a table that isn't captured. What was
        written stays, and the next run goes on after it.
        """
        try:
            return self._run(stopping, follow)
        except MigratorError:
            if self._fresh:  # a mistake in the command must not keep segments for an output that never began
                self._reader.forget()
            raise

    def _run(self, stopping: Stopping, follow: bool) -> Streamed:
        committed, held = self._begin()
        done, due = committed, 0.0
        while not stopping.requested():
            segment = self._reader.read_segment(done.segment, min(_WAIT_S, self._commit_s) if follow else 0.0)
            if segment is None and not follow:
                break
            if done == committed:
                due = time.monotonic() + self._commit_s
            if segment is not None:
                done = self._take(segment, done, held)
            due_now = time.monotonic() >= due or self._uncommitted_bytes >= _COMMIT_BYTES
            if done != committed and due_now and not _behind(done, held):
                done = committed = self._commit(done)
        if done != committed and not _behind(done, held):
            done = self._commit(done)
        return Streamed(self._events, done.segment, held.cut_bytes if held else 0)

    # -- steps --------------------------------------------------------------------------------------------------

    def _begin(self) -> tuple[ReaderPlace, Held | None]:
        place = self._reader.place()
        held = self._output.open(place.mark if place is not None else None)
        if place is not None and (place.order is not None or (held is not None and held.segment)):
            self._check_continued(place)
            return place, held
        self._fresh = True
        first, mark = self._from or 1, place.mark if place is not None else 0
        place = ReaderPlace(first - 1, None, 0, first, self._tables, mark)
        self._reader.store(place)  # from here on, nothing that is needed is released
        return place, held

    def _check_continued(self, place: ReaderPlace) -> None:
        if self._from is not None and self._from != place.first:
            raise OutputError(
                "the output was begun at another segment, and goes on where it ended",
                where=f"--from-segment {self._from}",
                cause=f"it holds the events of segments {place.first} to {place.segment}",
                remedy="leave --from-segment away, or choose another --output",
            )
        if self._tables != place.tables:
            raise OutputError(
                "the output was begun with other tables",
                where=f"--tables {','.join(self._tables) or '(all)'}",
                cause=f"it holds events of {', '.join(place.tables) or 'all tables'}",
                remedy=f"give --tables {','.join(place.tables)}" if place.tables else "leave --tables away",
            )
        self._check_same_log(place)

    def _check_same_log(self, place: ReaderPlace) -> None:
        if place.order is None:
            return
        manifest = self._reader.manifest(place.segment)
        found = (manifest.checkpoint.position.order, manifest.epoch) if manifest is not None else None
        other = manifest is not None and bool(place.id) and manifest.id != place.id
        if found != (place.order, place.epoch) or other:
            raise EventLogError(
                f"this isn't the event log that the output was written from up to segment {place.segment}",
                where=f"segment {place.segment}",
                cause="it is missing" if found is None else "it is another segment of that number",
                remedy="restore the event log, or begin anew: `migrator events --forget` with the same --output, "
                "then give another --output",
            )

    def _take(self, segment: Segment, done: ReaderPlace, held: Held | None) -> ReaderPlace:
        manifest = segment.manifest
        order = manifest.checkpoint.position.order
        other = bool(manifest.previous and done.id) and manifest.previous != done.id
        if other or manifest.epoch < done.epoch or (done.order is not None and order < done.order):
            raise EventLogError(
                f"segment {manifest.number} doesn't follow segment {done.segment}",
                where=f"segment {manifest.number}",
                cause=f"epoch {manifest.epoch}, position {order} after epoch {done.epoch}, position {done.order}",
                remedy="was the event log begun anew? Then begin this output anew too",
            )
        wanted = self._wanted(segment)
        tables = order_events([(data.schema, data.kind, data.rows) for data in segment.data])
        events = SegmentEvents(
            manifest.number,
            manifest.checkpoint.position,
            manifest.committed_at_us,
            tuple(TableEvents(schema, rows) for schema, rows in tables if schema.id in wanted),
            frozenset(wanted),
        )
        events = _beyond(held, events)
        self._fresh = False
        if events.tables:
            self._output.write(events)
            self._events += events.count()
            self._uncommitted_bytes += sum(table.rows.nbytes for table in events.tables)
        return replace(done, segment=manifest.number, order=order, epoch=manifest.epoch, id=manifest.id)

    def _wanted(self, segment: Segment) -> set[TableId]:
        """The chosen tables, or all. Raises ``ConfigError`` for one that the migration doesn't capture."""
        known = {dump.table for dump in segment.manifest.checkpoint.dumps}
        known |= {data.schema.id for data in segment.data}
        if not self._tables:
            return known
        found = {
            name: {table for table in known if name in (table.name, str(table))} for name in self._tables
        }
        missing = [name for name, tables in found.items() if not tables]
        if missing:
            raise ConfigError(
                "a table isn't captured by this migration",
                where=f"--tables {missing[0]}",
                cause=f"captured are {', '.join(sorted(map(str, known))) or 'no tables'}",
                remedy="name captured tables: those that the mapping reads",
            )
        return set().union(*found.values())

    def _commit(self, done: ReaderPlace) -> ReaderPlace:
        mark = self._output.commit(done.segment)
        place = replace(done, mark=mark)
        self._reader.store(place)
        self._uncommitted_bytes = 0
        return place


def _behind(done: ReaderPlace, held: Held | None) -> bool:
    """Tells whether the output holds more than was read again so far.

    Its mark is that of its own end: stored with an earlier segment, it would hide what is held beyond that one, and
    the process after the next kill would write that twice.
    """
    return held is not None and done.segment < held.segment


def _beyond(held: Held | None, events: SegmentEvents) -> SegmentEvents:
    """The events that the output doesn't hold yet."""
    if held is None or events.segment > held.segment:
        return events
    number = held.number if events.segment == held.segment else None
    tables = []
    for table in events.tables if number is not None else ():
        rows = table.rows.filter(pc.greater(table.rows[NUMBER], number))
        if rows.num_rows:
            tables.append(TableEvents(table.schema, rows))
    return replace(events, tables=tuple(tables))
