"""The product's capture loop between a source and an event log on disk, timed."""

from __future__ import annotations

import json
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from migrator.adapters.memory.eventlog import MemoryEventLog, MemoryRoom
from migrator.errors import MigratorError
from migrator.model.ledger import Ledger
from migrator.model.position import Position
from migrator.model.requests.request import WHOLE
from migrator.run.analysed import source_tables
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop
from migrator.run.failure import Stopping
from migrator.run.parts import Parts
from migrator.run.progress import Progress, Snapshot
from scenarios.bench.capture.probe import Commit

_POLL_S = 0.01
_LAST = 19
_DEADLINE_S = 1800.0
EARLY_S = 2 * time.clock_getres(5)
"""The seconds by which the time of a file's change may be early: it comes from CLOCK_REALTIME_COARSE of Linux (number
5), and was seen to be nearly two of its ticks behind."""


class OurCapture:
    """Captures a project's source tables, one run after the other, each going on where the last one ended.

    Args:
        parts: of the project, as ``migrator run`` makes them.
        state: its state folder.
    """

    def __init__(self, parts: Parts, state: Path):
        self._parts = parts
        self.state = state
        self._schemas = parts.catalog.tables(source_tables(parts.mapping))
        self._epoch = 0
        self.progress = Progress()

    def caught_up(self) -> Callable[[Snapshot], bool]:
        """Returns a function that tells whether the event log holds all that is committed now, and all dumps."""
        goal: Position = self._parts.catalog.position()

        def reached(now: Snapshot) -> bool:
            return _dumped(now) and now.captured is not None and now.captured >= goal

        return reached

    def timed(self, until: Callable[[Snapshot], bool]) -> float:
        """Seconds from the moment the log is being read until a condition holds."""
        with self.running():
            self._wait(lambda now: now.captured is not None)
            started = time.monotonic()
            self._wait(until)
            return time.monotonic() - started

    def dumped(self) -> float:
        """Seconds of the first dump of all tables."""
        return self.timed(_dumped)

    @contextmanager
    def running(self, goes_last: bool = False) -> Iterator[None]:
        """Capture in threads of this process. Raises what ended it.

        ``goes_last``: where processor time is short, whatever else runs on this machine goes first.
        """
        self._epoch += 1
        log = self._parts.event_log(self._epoch, Ledger("bench", self._epoch, 0, None))
        last = log.writer.last()
        if last is None:
            self._parts.catalog.prepare(self._schemas)
        self.progress = Progress()
        loop = CaptureLoop(
            self._parts.source(self._schemas),
            Attempt(
                {schema.id: schema for schema in self._schemas},
                None if last is None else last.checkpoint,
                self._parts.capture_limits,
                f"{self._epoch}-bench",
            ),
            log.writer,
            self._parts.requests,
            MemoryRoom(MemoryEventLog()),  # nobody applies here: there is always room
            self.progress,
        )
        self._stopping = Stopping()

        def captured() -> None:
            if goes_last:  # of this thread alone, and of those that it begins
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LAST)
            loop.run(self._stopping)

        thread = self._stopping.thread("capture", captured)
        try:
            yield
        finally:
            self._stopping.request()
            thread.join(30)
        self._stopping.raise_failure()

    def dump_again(self, at_least_s: float) -> None:
        """Dumps all tables once more while it runs, and again until so much time has passed."""
        ends = time.monotonic() + at_least_s
        while time.monotonic() < ends:
            self._dump_requested()

    @contextmanager
    def dumping(self) -> Iterator[None]:
        """All tables, and again as often as there is time; what is under way at the end is cancelled."""
        ends = Stopping()

        def dump() -> None:
            while not ends.requested():
                self._dump_requested(ends.requested)

        thread = ends.thread("dumps", dump)
        try:
            yield
        finally:
            ends.request()
            thread.join(30)
        ends.raise_failure()

    def wait_until_caught_up(self) -> None:
        """Waits until the event log holds all that was committed when this was called."""
        self._wait(self.caught_up())

    def _dump_requested(self, given_up: Callable[[], bool] = lambda: False) -> None:
        tables = tuple(schema.id for schema in self._schemas)
        request = self._parts.requests.update(lambda book: book.start(tables, WHOLE)).requests[-1]
        name = request.name()
        self._wait(lambda now: given_up() or any(dump.request == name and dump.done for dump in now.requests))
        if given_up():
            self._parts.requests.update(lambda book: book.cancel(request.id))

    def _wait(self, until: Callable[[Snapshot], bool]) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not until(self.progress.snapshot()):
            if self._stopping.requested():
                self._stopping.raise_failure()
            if time.monotonic() > deadline:
                raise MigratorError("capture never came to its end", where=f"{_DEADLINE_S:g} s")
            threading.Event().wait(_POLL_S)


def _dumped(now: Snapshot) -> bool:
    return bool(now.dumps) and not now.dumping()


def lags_s(state: Path, since_s: float) -> list[tuple[float, float]]:
    """Lists, for each segment since a moment, when it was durable (Unix time), and the age of its newest commit then.

    ``state`` is the folder of a project's state.
    """
    return [
        (written_s, written_s - manifest["committed_at_us"] / 1e6)
        for written_s, manifest in _segments(state)
        if written_s >= since_s and manifest["committed_at_us"]
    ]


def lags_of(state: Path, commits: Sequence[Commit], since_s: float) -> list[tuple[float, float]]:
    """The same of each of these commits since a moment, by the clock of whoever made them; of those in a
    segment."""
    durable = [
        (manifest["checkpoint"]["position"]["order"], written_s) for written_s, manifest in _segments(state)
    ]
    found = []
    for commit in commits:
        at = bisect_left(durable, (commit.order, 0.0))
        if commit.at_s >= since_s and at < len(durable):
            found.append((durable[at][1], durable[at][1] - commit.at_s))
    return found


def _segments(state: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yields for each segment, in order, when it was durable (Unix time), and its manifest.

    Its last change of status is the link that makes it exist, after all was synced. Such a time is early by up to
    ``EARLY_S``, which is added: a lag is rather told too long than below zero.
    """
    for file in sorted((state / "eventlog" / "segments").glob("*.json")):
        yield file.stat().st_ctime + EARLY_S, json.loads(file.read_text().splitlines()[0])
