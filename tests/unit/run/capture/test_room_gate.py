"""Capture waits before the event log's disk is full, goes on by itself, and never waits for what can't come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.places import StoredPlace, write_place
from migrator.adapters.event_log.files.room import FileRoom
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.errors import EventLogError
from migrator.model.limits import CaptureLimits
from migrator.ports.eventlog import ReaderPlace
from migrator.run.capture.room_gate import RoomGate
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from tests.contract.event_log.eventlog_content import inserted

DEADLINE_S = 20.0
GIB = 1 << 30


class Disk(FileRoom):
    """Room on a real event log, on a disk of which a test says how much is free."""

    free, size = 10 * GIB, 20 * GIB

    def free_bytes(self) -> int:
        return self.free

    def disk_bytes(self) -> int:
        return self.size


class Bench:
    """An event log with its gate. ``bound`` and ``floor``: the user's."""

    def __init__(self, directory: Path, bound: int = 0, floor: int = 0) -> None:
        self.directory = directory
        self.writer = FileSegmentWriter(directory, 1)
        self.reader = FileBatchReader(directory)
        self.room = Disk(directory, self.writer, self.reader)
        self.progress, self.stopping = Progress(), Stopping()
        limits = replace(CaptureLimits(), event_log_bytes=bound, event_log_free_bytes=floor)
        self.gate = RoomGate(self.room, limits, self.progress, self.stopping)

    def write(self, order: int, ends: bool = True) -> None:
        """Through the gate, which must be open."""
        assert not self.waits(order, ends)

    def waits(self, order: int, ends: bool = True) -> bool:
        """Whether a segment has to wait; one that needn't is written."""
        self.progress.warn("event log")  # what an earlier wait has left when it was stopped
        thread = self.begin(order, ends)
        self.until(lambda: not thread.is_alive() or bool(self.progress.snapshot().warnings))
        waiting = thread.is_alive()
        self.stopping.request()
        thread.join(DEADLINE_S)
        self.stopping = self.gate._stopping = Stopping()
        return waiting

    def begin(self, order: int, ends: bool = True) -> threading.Thread:
        content = inserted(order, *range(50), ends=ends)

        def work() -> None:
            if self.gate.admit(content):
                self.writer.append(content)

        return self.stopping.thread("capture", work)

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            self.stopping.raise_failure()
            assert time.monotonic() < deadline
            threading.Event().wait(0.005)


def test_capture_waits_at_the_bound_and_goes_on_once_segments_were_removed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, bound=1)
    bench.write(1)  # nothing can be released: one segment may be larger than the bound
    bench.write(2)
    thread = bench.begin(3)
    bench.until(lambda: bool(bench.progress.snapshot().warnings))
    assert "event_log_bytes = 1" in bench.progress.snapshot().warnings[0]
    assert bench.writer.last().number == 2, "nothing went past the gate"  # type: ignore[union-attr]
    bench.reader.release(2)  # as apply does once the target holds them
    thread.join(DEADLINE_S)
    assert not thread.is_alive()
    assert (bench.writer.last().number, bench.progress.snapshot().warnings) == (3, ())  # type: ignore[union-attr]


def test_without_bounds_and_with_space_nothing_waits(tmp_path: Path) -> None:
    """The control: what the tests around this one see comes from the bounds."""
    bench = Bench(tmp_path)
    for order in range(1, 6):
        bench.write(order)


def test_a_transaction_larger_than_the_bound_goes_through(tmp_path: Path) -> None:
    bench = Bench(tmp_path, bound=1)
    bench.write(1)
    for _ in range(4):
        bench.write(2, ends=False)  # apply can't take it before its end: waiting would be for ever
    bench.write(2)
    assert bench.waits(3), "it is complete now: apply comes first"


def test_everything_before_a_large_transaction_is_applied_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path, bound=1)
    bench.write(1)
    bench.write(2)
    assert bench.waits(3, ends=False)


def test_capture_waits_before_the_disk_is_full_and_says_what_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.room.free = 256 << 20
    assert bench.waits(1)
    assert "make room on this disk" in bench.progress.snapshot().warnings[0]
    bench.room.free = GIB
    bench.write(1)
    bench.room.free = 5 << 20
    assert Bench(tmp_path / "other", floor=1 << 20).waits(1) is False


def test_the_floor_is_a_share_of_a_small_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.room.size, bench.room.free = 64 << 20, 2 << 20
    bench.write(1)
    bench.room.free = 1 << 20
    assert bench.waits(2)


def test_a_transaction_that_does_not_fit_on_the_disk_stops_by_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(1)
    bench.room.free = 0
    with pytest.raises(EventLogError, match="doesn't fit on the event log's disk") as caught:
        bench.gate.admit(inserted(2, 1, ends=False))
    assert "268,435,456 are to stay free" in caught.value.cause


def test_a_floor_above_the_disk_stops_by_name(tmp_path: Path) -> None:
    bench = Bench(tmp_path, floor=20 * GIB)
    with pytest.raises(EventLogError, match="never be free"):
        bench.gate.admit(inserted(1, 1))


def test_an_output_that_keeps_segments_is_named_and_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, bound=1)
    bench.write(1)
    bench.write(2)
    place = tmp_path / "readers" / "events.json"
    place.parent.mkdir()

    def stands_at(segment: int) -> None:
        write_place(place, StoredPlace("json:/events", False, ReaderPlace(segment, 1, 1, 1, (), 0)))

    stands_at(1)
    bench.reader.release(2)
    thread = bench.begin(3)
    bench.until(lambda: bool(bench.progress.snapshot().warnings))
    assert "kept for json:/events" in bench.progress.snapshot().warnings[0]
    stands_at(2)  # nothing is applied meanwhile that would release again: the gate does
    thread.join(DEADLINE_S)
    assert bench.writer.last().number == 3  # type: ignore[union-attr]


def test_an_output_at_the_last_whole_transaction_does_not_hold_up_the_next_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, bound=1)
    bench.write(1)
    bench.write(2, ends=False)
    place = tmp_path / "readers" / "events.json"
    place.parent.mkdir()
    write_place(place, StoredPlace("json:/events", False, ReaderPlace(1, 1, 1, 1, (), 0)))
    bench.reader.release(1)
    bench.write(2, ends=False)


def test_a_real_disk_is_measured(tmp_path: Path) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    writer.append(inserted(1, 1))
    room = FileRoom(tmp_path, writer, FileBatchReader(tmp_path))
    assert 0 < room.used_bytes() < room.free_bytes() <= room.disk_bytes()
