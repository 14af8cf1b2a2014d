"""A table that falls silent while others change is warned of, until it changes again; an idle source is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom, MemorySegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.model.limits import CaptureLimits
from migrator.model.table import TableId, TableSchema
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.capture.silent_tables import silent_tables
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from scenarios.simulation.clients import initial_rows
from scenarios.simulation.source import Link, SimulatedChunkReader, SimulatedLogReader, Source, Write
from scenarios.simulation.tables import COUNTER, REGISTER, SCHEMAS, Stored

DEADLINE_S = 30.0
A, B, C = (TableId("s", name) for name in "abc")
MINUTE_US = 60_000_000


def test_only_what_is_older_than_the_newest_by_more_than_the_bound_is_told() -> None:
    changes = ((A, 10 * MINUTE_US), (B, 9 * MINUTE_US), (C, 4 * MINUTE_US))
    assert silent_tables(changes, 60) == ["s.c has had no change for 360 s, while other tables had"]
    assert len(silent_tables(changes, 59.9)) == 2
    assert silent_tables(changes, 360) == []
    assert silent_tables(changes, 0) == [], "nobody asked"
    assert silent_tables((), 1) == []
    assert silent_tables(((A, 5),), 1) == [], "there is nothing beside it"


@given(st.dictionaries(st.sampled_from((A, B, C)), st.integers(0, 10**16), min_size=1), st.integers(1, 10**6))
def test_one_table_is_never_silent_and_moving_the_clock_changes_nothing(
    changes: dict[TableId, int], bound_s: int
) -> None:
    told = silent_tables(changes.items(), bound_s)
    assert len(told) < len(changes)
    assert told == silent_tables([(table, at_us + 10**15) for table, at_us in changes.items()], bound_s)


@contextmanager
def captured(
    source: Source, event_log: MemoryEventLog, limits: CaptureLimits, epoch: int
) -> Iterator[Progress]:
    """A capture loop that runs; what it finds is in the event log afterwards."""
    link, progress, stopping = Link(source, 10, True, records=10), Progress(), Stopping()
    writer = MemorySegmentWriter(event_log, epoch)
    last = writer.last()
    loop = CaptureLoop(
        SourcePorts(lambda: SimulatedLogReader(link), lambda: SimulatedChunkReader(link), None),
        Attempt(SCHEMAS, None if last is None else last.checkpoint, limits, f"{epoch}-a"),
        writer,
        MemoryRequests(),
        MemoryRoom(MemoryEventLog()),
        progress,
    )
    thread = stopping.thread("capture", lambda: loop.run(stopping))
    try:
        yield progress
    finally:
        stopping.request()
        thread.join(DEADLINE_S)
    stopping.raise_failure()


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def caught_up(progress: Progress, source: Source) -> Callable[[], bool]:
    """Whether a segment is durable, and told of, that holds all that is committed now."""
    goal = source.end()

    def reached() -> bool:
        captured = progress.snapshot().captured
        return captured is not None and captured >= goal

    return reached


def write(source: Source, schema: TableSchema, number: int, at_us: int) -> None:
    """A client changes a row at that moment of the source's clock."""
    source.clock_us = at_us
    row = source.logged[schema.id].get(1)
    before = None if row is None else (1, row)
    source.commit(1, [Write(schema.id, before, (1, Stored(1, number, 0)))])
    while source.hidden:
        source.reveal(0)


def test_a_table_that_falls_silent_is_warned_of_until_it_changes_again_also_over_a_restart() -> None:
    source, event_log = Source(False, initial_rows()), MemoryEventLog()
    limits = CaptureLimits(linger_s=0.005, table_silence_s=60, dump_share=1.0)
    with captured(source, event_log, limits, 1) as progress:
        wait_for(lambda: progress.snapshot().segments > 0)
        write(source, COUNTER, 1, 1 * MINUTE_US)
        write(source, REGISTER, 1, 2 * MINUTE_US)
        wait_for(caught_up(progress, source))
        assert progress.snapshot().warnings == (), "a minute is allowed"
        write(source, REGISTER, 2, 5 * MINUTE_US)
        wait_for(lambda: bool(progress.snapshot().warnings))
        assert progress.snapshot().warnings == (
            "old.counter has had no change for 240 s, while other tables had",
        )
    with captured(source, event_log, limits, 2) as progress:
        write(source, REGISTER, 3, 6 * MINUTE_US)
        wait_for(lambda: "for 300 s" in "".join(progress.snapshot().warnings))
        write(source, COUNTER, 2, 6 * MINUTE_US)
        wait_for(lambda: progress.snapshot().warnings == ())


def test_nobody_is_warned_who_did_not_ask() -> None:
    source = Source(False, initial_rows())
    with captured(source, MemoryEventLog(), CaptureLimits(linger_s=0.005), 1) as progress:
        wait_for(lambda: progress.snapshot().segments > 0)
        write(source, COUNTER, 1, 1 * MINUTE_US)
        write(source, REGISTER, 1, 5000 * MINUTE_US)
        wait_for(caught_up(progress, source))
        assert progress.snapshot().warnings == ()
