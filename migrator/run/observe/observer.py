"""One value of what a process knows of its migration, for metrics and health.

Whoever asks for it waits for nothing: it is put together from what the run's loops count anyway, and from the last
answers to questions that threads of their own ask on timers. A question without an answer is a fact like another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from migrator.core.watched.hour import after
from migrator.core.watched.verdict import dated, troubles, verdict
from migrator.errors import MigratorError
from migrator.model.cutover.record import Record
from migrator.model.hint import Hint
from migrator.model.ledger import Ledger
from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour
from migrator.model.observed.live import Live
from migrator.model.observed.observation import (
    LEADER,
    STANDBY,
    Ended,
    Judged,
    Observation,
    Room,
    Server,
    counted_aside,
)
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import RequestBook
from migrator.run.failure import Stopping
from migrator.run.observe.unbroken import unbroken
from migrator.run.progress import SILENT_S, Progress, Snapshot, phase

TARGET_EVERY_S, FILES_EVERY_S, HEAP_EVERY_S = 5.0, 2.0, 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """The words of processes to each other: who leads, how many stand by, the leader's last hint, dump requests."""

    leader: str = ""
    standbys: int | None = None
    hint: Hint | None = None
    book: RequestBook | None = None


@dataclass(frozen=True, slots=True)
class Sights:
    """The questions. Each may take as long as it likes, and may raise a ``MigratorError``.

    Attributes:
        ledger: of the target; None: there is none.
        seen: what processes tell each other.
        judged: verdicts of verifications and dual reads.
        files: bytes of the event log, and free bytes of its disk.
        memory: resident bytes by process.
        cutover: the record of the cut-over; None: there is none.
        heap: bytes of the JVM's heap by what they are; none where it doesn't run.
    """

    ledger: Callable[[], Ledger | None]
    seen: Callable[[], Seen]
    judged: Callable[[], Judged]
    files: Callable[[], Room]
    memory: Callable[[], tuple[tuple[str, int], ...]]
    cutover: Callable[[], Record | None] = lambda: None
    heap: Callable[[], tuple[tuple[str, int], ...]] = tuple


@dataclass(slots=True)
class _Answers:
    ledger: Ledger | None = None
    target: Server = field(default_factory=Server)
    target_at_s: float | None = None
    seen: Seen = field(default_factory=Seen)
    judged: Judged = field(default_factory=Judged)
    files: Room = field(default_factory=Room)
    memory: tuple[tuple[str, int], ...] = ()
    heap: tuple[tuple[str, int], ...] = ()
    heap_at_s: float = 0.0
    cutover: Record | None = None
    hour: Hour = field(default_factory=Hour)


class Observer:
    """Asks, and puts together what is known.

    Args:
        migration: its name.
        unit: of its source's positions.
        progress: of this process's run.
        sights: the questions.
        ended: how the run before this one ended.
        bounds: from which on something is wrong.
    """

    def __init__(
        self,
        migration: str,
        unit: str,
        progress: Progress,
        sights: Sights,
        ended: Ended | None = None,
        bounds: Bounds | None = None,
    ):
        self._migration, self._unit, self._bounds = migration, unit, bounds or Bounds()
        self._progress = progress
        self._sights = sights
        self._ended = ended
        self._answers = _Answers()
        self._lock = threading.Lock()
        self._started_us = time.time_ns() // 1000

    def start(self, stopping: Stopping) -> None:
        """Begins to ask, each question in a thread of its own, until a stop is requested."""
        for name, look, every_s in (
            ("target", self.look_at_target, TARGET_EVERY_S),
            ("processes", self.look_at_processes, FILES_EVERY_S),
            ("files", self.look_at_files, FILES_EVERY_S),
            ("cut-over", self.look_at_cutover, FILES_EVERY_S),
            ("heap", self.look_at_heap, HEAP_EVERY_S),
            ("hour", self.look_back, FILES_EVERY_S),
        ):
            looks = partial(_again, look, every_s, stopping)
            stopping.thread(f"observe {name}", unbroken(name, looks, self._progress, stopping))

    def look_at_target(self) -> None:
        """Asks the target for its ledger, and notes how long that took."""
        asked_s = self._progress.clock()
        try:
            ledger = self._sights.ledger()
        except MigratorError as error:
            self._note(target=self._answers.target.refused(error.what, time.time_ns() // 1000))
            return
        now_s = self._progress.clock()
        target = self._answers.target.answered(now_s - asked_s, time.time_ns() // 1000)
        self._note(ledger=ledger, target=target, target_at_s=now_s)

    def look_at_processes(self) -> None:
        """Asks who leads."""
        try:
            self._note(seen=self._sights.seen())
        except MigratorError as error:
            self._progress.met(error)
            self._note(seen=Seen())

    def look_at_files(self) -> None:
        """Looks at what is on this machine."""
        try:
            judged = self._sights.judged()
        except MigratorError as error:
            judged = Judged(problem=error.what)
        try:
            self._note(judged=judged, files=self._sights.files(), memory=self._sights.memory())
        except (MigratorError, OSError):
            self._note(judged=judged, files=Room())

    def look_at_heap(self) -> None:
        """Asks the JVM for its heap. What one that stands still said before is left out meanwhile."""
        heap = self._sights.heap()
        self._note(heap=heap, heap_at_s=self._progress.clock())

    def look_at_cutover(self) -> None:
        """Reads the record of the cut-over; where it can't be read, none is known."""
        try:
            self._note(cutover=self._sights.cutover())
        except (MigratorError, ValueError):  # a row that is no document
            self._note(cutover=None)

    def look_back(self) -> None:
        """Adds what is known now to the last hour."""
        seen = self.observation()
        hour = after(self._known().hour, seen)
        self._note(hour=dated(hour, seen, troubles(seen, hour, self._bounds)))

    def live(self) -> Live:
        """Returns what is known now, the hour before, and the verdict on both. Waits for nobody."""
        one, seen = self._known(), self.observation()
        found = troubles(seen, one.hour, self._bounds)
        held = None if one.ledger is None else one.ledger.checkpoint
        mapped = () if held is None or held.mapped is None else held.mapped
        hint = one.seen.hint
        newest = hint.checkpoint if hint is not None else None
        leads = seen.role == LEADER
        return Live(
            seen=seen,
            hour=one.hour,
            verdict=verdict(seen, one.hour, found),
            troubles=found,
            targets=tuple(mapping.target for mapping in mapped),
            book=one.seen.book,
            requests=self._progress.snapshot().requests
            if leads
            else newest.requests
            if newest is not None
            else (),
            cutover=one.cutover,
        )

    def _known(self) -> _Answers:
        with self._lock:
            return replace(self._answers)

    def observation(self) -> Observation:
        """Returns what is known now. Waits for nobody."""
        one = self._known()
        now, seen = self._progress.snapshot(), one.seen
        leads = now.epoch > 0
        hint = seen.hint
        held = None if one.ledger is None else one.ledger.checkpoint
        applied = now.applied if leads and now.applied is not None else held.position if held else None
        newest = hint.checkpoint if hint is not None and not leads else None
        source, end = self._progress.source()
        return Observation(
            migration=self._migration,
            at_us=time.time_ns() // 1000,
            started_us=self._started_us,
            role=LEADER if leads else STANDBY,
            phase=phase(now),
            note=now.note or now.doing,
            warnings=self._progress.warnings(),
            warned_us=self._progress.warned_us(),
            epoch=now.epoch or (hint.epoch if hint is not None else 0),
            leader=seen.leader,
            standbys=seen.standbys,
            captured=now.captured if leads else newest.position if newest is not None else None,
            applied=applied,
            end=end,
            unit=self._unit,
            lag=self._progress.lag(applied),
            capture_lag=self._progress.capture_lag(),
            source=source,
            target=self._target(one),
            retention=now.retention,
            room=self._room(one, now, leads),
            dumps=now.dumps if leads else newest.dumps if newest is not None else (),
            filling=now.filling if leads else held.filling if held is not None else (),
            requests_left=now.requests_left if leads else None,
            work=self._progress.work(),
            judged=_of_the_mapping(one.judged, held),
            memory=one.memory,
            heap=one.heap if self._progress.clock() - one.heap_at_s <= 2 * HEAP_EVERY_S else (),
            ended=self._ended if leads or hint is None else hint.ended or self._ended,
            fallen=one.hour.fallen,
            aside=counted_aside(held.bad_rows if held is not None else ()),
        )

    def _target(self, one: _Answers) -> Server:
        if one.target_at_s is None:
            return one.target
        silent_s = self._progress.clock() - one.target_at_s
        if silent_s <= SILENT_S or one.target.problem:
            return one.target
        return Server(None, f"no answer for {silent_s:,.0f} s", time.time_ns() // 1000 - int(silent_s * 1e6))

    def _room(self, one: _Answers, now: Snapshot, leads: bool) -> Room:
        hint, applied = one.seen.hint, 0 if one.ledger is None else one.ledger.segment
        newest = hint.segment if hint is not None else None
        if leads and now.captured_segment and now.applied_segment:
            segments: int | None = max(0, now.captured_segment - now.applied_segment)
        else:
            segments = None if newest is None or one.ledger is None else max(0, newest - applied)
        return Room(segments, one.files.event_log_bytes, one.files.disk_free_bytes)

    def _note(self, **answers: object) -> None:
        with self._lock:
            for name, answer in answers.items():
                setattr(self._answers, name, answer)


def _again(look: Callable[[], None], every_s: float, stopping: Stopping) -> None:
    while not stopping.requested():
        look()
        stopping.wait(every_s)


def _of_the_mapping(judged: Judged, applied: Checkpoint | None) -> Judged:
    """Verdicts without those of targets that the mapping no longer has: nobody verifies or repairs them again."""
    if applied is None:
        return judged
    return replace(judged, verified=tuple(one for one in judged.verified if applied.maps(one.table)))
