"""The state that a run shows: counters written by the loops, read by the display and by ``--until caught-up``."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace

from migrator.model.position import Position
from migrator.model.progress import Filling, TableDump


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The counters at one moment. Totals count since this process started, dump progress since the dump began.

    ``lag_s`` is the age, at the moment its target transaction committed, of the newest source commit in the last
    batch that held any; None before the first one. ``requests`` is the progress of the open dump requests as
    captured, ``applied_requests`` as the target holds it, ``applied_dumps`` likewise that of the first dumps;
    ``requests_left`` counts those that run, None: not known. ``kept_up``: whether the target was made to look at
    every table that a dump has filled. ``captured_segment``, ``applied_segment``: numbers of the last ones of this
    process, 0 before. ``filling`` has the joined targets that are being filled piece by piece.
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
    lag_s: float | None = None
    reconnects: int = 0
    note: str = ""
    warnings: tuple[str, ...] = ()

    def dumping(self) -> bool:
        """Tells whether any dump, a request's included, has chunks to come."""
        return not all(dump.done for dump in (*self.dumps, *self.requests))


@dataclass
class Progress:
    """Thread-safe holder of the present ``Snapshot`` and of recent lags."""

    _now: Snapshot = field(default_factory=Snapshot)
    _lags_s: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)

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

    def warn(self, about: str, *warnings: str) -> None:
        """Replaces the warnings about one thing; none: it is as it should be."""
        with self._lock:
            self._warnings[about] = warnings
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
            self._now = replace(self._now, lag_s=lag_s)

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
