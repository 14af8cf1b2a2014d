"""The state that a run shows: counters written by the loops, read by the display and by ``--until caught-up``."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from migrator.core.lag import LagMeter
from migrator.core.standing import phase_of
from migrator.errors import MigratorError
from migrator.model.observed.observation import (
    STANDING_BY,
    STARTING,
    STOPPED,
    Applied,
    Lag,
    Server,
    StepTaken,
    Work,
)
from migrator.model.position import Position
from migrator.model.progress import Filling, TableDump
from migrator.model.retention import Retention

SILENT_S = 15.0
"""A server counts as silent when its last answer is older."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters at one moment. Totals count since this process started, dump progress since the dump began.

    ``epoch`` is that of the lease while this process leads, 0 while it doesn't; ``led`` that of
    the last one.
    ``requests`` is the progress of the open dump requests as
    captured, ``applied_requests`` as the target holds it, ``applied_dumps`` likewise that of the first dumps;
    ``requests_left`` counts those that run, None: not known. ``kept_up``: whether the target was made to look at
    every table that a dump has filled. ``captured_segment``, ``applied_segment``: numbers of the last ones of this
    process, 0 before. ``filling`` has the joined targets that are being filled piece by piece.
    ``retrying``: source rows of rows set aside are about to be asked for.
    ``doing`` is what this process does before it captures and applies; empty once it does.
    ``standing_by``: it waits until the process that leads doesn't any more. ``ended``: the run is over, and its
    process about to be.
    ``retention`` is what the source last said about its log.
    ``warnings`` are what an operator should do something about while everything
    still goes on.
    """

    dumps: tuple[TableDump, ...] = ()
    requests: tuple[TableDump, ...] = ()
    applied_requests: tuple[TableDump, ...] = ()
    applied_dumps: tuple[TableDump, ...] = ()
    requests_left: int | None = None
    captured_changes: int = 0
    captured_transactions: int = 0
    applied_changes: int = 0
    applied_transactions: int = 0
    applied_chunk_rows: int = 0
    applied_batches: int = 0
    segments: int = 0
    captured_segment: int = 0
    applied_segment: int = 0
    captured: Position | None = None
    applied: Position | None = None
    applied_dump_complete: bool = False
    kept_up: bool = False
    filling: tuple[Filling, ...] = ()
    retrying: bool = False
    reconnects: int = 0
    epoch: int = 0
    led: int = 0
    retention: Retention | None = None
    doing: str = ""
    standing_by: bool = False
    ended: bool = False
    note: str = ""
    warnings: tuple[str, ...] = ()

    def dumping(self) -> bool:
        """Tells whether any dump, a request's included, has chunks to come."""
        return not all(dump.done for dump in (*self.dumps, *self.requests))


def phase(now: Snapshot) -> str:
    """The phase of this process, whether it leads or not (one of ``model.observed.observation.PHASES``)."""
    if now.ended:
        return STOPPED
    if not now.epoch:
        return STANDING_BY if now.standing_by else STARTING
    begun = now.captured is not None and now.applied is not None
    return phase_of(now.dumps, now.requests, bool(now.filling), begun)


@dataclass
class Progress:
    """Thread-safe holder of the present ``Snapshot``, of counts, and of what is known of the lag."""

    _now: Snapshot = field(default_factory=Snapshot)
    _meter: LagMeter = field(default_factory=LagMeter)
    _capture: LagMeter = field(default_factory=LagMeter)
    _source: Server = field(default_factory=Server)
    _answered_s: float = 0.0
    _earlier: Applied | None = None
    _counts: dict[str, Counter[tuple[str, ...]]] = field(default_factory=dict)
    _seconds: dict[tuple[str, ...], float] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    _lags_s: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _warned_us: dict[str, int] = field(default_factory=dict)
    _taken: Callable[[StepTaken], None] | None = None

    def snapshot(self) -> Snapshot:
        """The counters now."""
        with self._lock:
            return self._now

    def set(self, **values: object) -> None:
        """Replaces counters."""
        with self._lock:
            self._now = replace(self._now, **values)  # type: ignore[arg-type]

    def say(self, text: str) -> None:
        """Replaces the note."""
        self.set(note=text)

    def doing(self, text: str) -> None:
        """Replaces the step of a start; empty: it captures and applies."""
        self.set(doing=text)

    def warn(self, about: str, *warnings: str) -> None:
        """Replaces the warnings about one thing; none: it is as it should be."""
        with self._lock:
            self._warnings[about] = warnings
            if warnings:
                self._warned_us.setdefault(about, time.time_ns() // 1000)
            else:
                self._warned_us.pop(about, None)
            united = tuple(text for texts in self._warnings.values() for text in texts)
            self._now = replace(self._now, warnings=united)

    def add(self, **amounts: int) -> None:
        """Adds to counters."""
        with self._lock:
            self._now = replace(
                self._now, **{name: getattr(self._now, name) + n for name, n in amounts.items()}
            )

    def committed(self, committed_at_us: int) -> None:
        """Notes the lag of a batch that was committed to the target just now."""
        lag_s = max(0.0, time.time() - committed_at_us / 1e6)
        with self._lock:
            self._lags_s.append(lag_s)

    # -- lag ----------------------------------------------------------------------------------------------------

    def answered(self, asked_s: float, end: Position) -> None:
        """Notes where the source's log ends, by its answer to a question of ``asked_s`` (see ``clock``)."""
        with self._lock:
            self._answered_s = self.clock()
            self._meter.answered(asked_s, end)
            self._capture.answered(asked_s, end)
            self._source = self._source.answered(max(0.0, self.clock() - asked_s), time.time_ns() // 1000)

    def refused(self, why: str) -> None:
        """Notes that the source gave no answer."""
        with self._lock:
            self._meter.refused(why)
            self._capture.refused(why)
            self._source = self._source.refused(why, time.time_ns() // 1000)

    def remember(self, known: Applied) -> None:
        """Takes an earlier run's word on what was applied; it counts once the target is seen to be that far."""
        with self._lock:
            self._earlier = known

    def lag(self, applied: Position | None = None) -> Lag:
        """The lag now, with what this process applied; ``applied``: with what the target is known to have instead."""
        with self._lock:
            return self._reading(self._now.applied if applied is None else applied)

    def capture_lag(self) -> Lag:
        """The same of what is captured."""
        with self._lock:
            return self._capture.reading(self.clock(), self._now.captured)

    def known_applied(self) -> Applied | None:
        """The newest moment up to which everything is known to be applied, for those who look later."""
        with self._lock:
            applied = self._now.applied
            lag = self._reading(applied)
        if lag.at_most_s is None or applied is None:
            return None
        return Applied(int((time.time() - lag.at_most_s) * 1e6), applied.order)

    def _reading(self, applied: Position | None) -> Lag:
        now_s, earlier = self.clock(), self._earlier
        if earlier is not None and applied is not None:
            self._earlier = None
            if applied.order >= earlier.order:
                self._meter.known_before(now_s - max(0.0, time.time() - earlier.until_us / 1e6))
        return self._meter.reading(now_s, applied)

    def source(self) -> tuple[Server, Position | None]:
        """The source as it answered last, and where its log ended; one that is silent for long gives no answer."""
        with self._lock:
            silent_s = self.clock() - self._answered_s
            if self._source.problem or silent_s <= SILENT_S:
                return self._source, self._meter.newest
            since_us = time.time_ns() // 1000 - int(silent_s * 1e6)
            return Server(None, f"no answer for {silent_s:,.0f} s", since_us), self._meter.newest

    # -- counts -------------------------------------------------------------------------------------------------

    def count(self, kind: str, amounts: Mapping[tuple[str, ...], int]) -> None:
        """Adds to the counts of a kind (``batches``, ``changes``, ``errors``), by names of what is counted."""
        with self._lock:
            self._counts.setdefault(kind, Counter()).update(amounts)

    def met(self, error: MigratorError) -> None:
        """Counts an error, whether it ends the run or is got over."""
        self.count("errors", {(type(error).__name__,): 1})

    def watch_steps(self, taken: Callable[[StepTaken], None]) -> None:
        """Has every further step of batches handed to ``taken``, which mustn't wait for anything."""
        with self._lock:
            self._taken = taken

    @contextmanager
    def taking(self, step: str, segment: int = 0) -> Iterator[None]:
        """Adds the time within it to a step of batches; ``segment``: the last one of the batch."""
        began, began_us, error = self.clock(), time.time_ns() // 1000, ""
        try:
            yield
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            with self._lock:
                self._seconds[(step,)] = self._seconds.get((step,), 0.0) + self.clock() - began
                taken = self._taken
            if taken is not None:
                taken(StepTaken(step, segment, began_us, time.time_ns() // 1000, error))

    def work(self) -> Work:
        """The counts since this process started."""
        with self._lock:
            now, counts = self._now, {kind: tuple(sorted(of.items())) for kind, of in self._counts.items()}
            seconds = tuple(sorted(self._seconds.items()))
        return Work(
            batches=counts.get("batches", ()),
            batch_seconds=seconds,
            changes=counts.get("changes", ()),
            errors=counts.get("errors", ()),
            captured_changes=now.captured_changes,
            applied_changes=now.applied_changes,
            applied_chunk_rows=now.applied_chunk_rows,
            applied_transactions=now.applied_transactions,
            reconnects=now.reconnects,
        )

    def warnings(self) -> tuple[tuple[str, str], ...]:
        """The warnings, each with what it is about."""
        with self._lock:
            return tuple((about, text) for about, texts in self._warnings.items() for text in texts)

    def warned_us(self) -> tuple[tuple[str, int], ...]:
        """Returns since when there are warnings about each thing, microseconds since 1970."""
        with self._lock:
            return tuple(self._warned_us.items())

    def forget_lags(self) -> None:
        """Starts the quantiles anew, after a warm-up."""
        with self._lock:
            self._lags_s.clear()

    def lag_quantiles_s(self) -> tuple[float, float] | None:
        """Median and 99th percentile of the batch lags seen by this process, or None without any."""
        with self._lock:
            lags = sorted(self._lags_s)
        if not lags:
            return None
        return lags[len(lags) // 2], lags[min(len(lags) - 1, int(len(lags) * 0.99))]
