"""Looks at a run once a second, and hands on what happened since: to its log, and to a hook."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from contextlib import suppress

from migrator.core.happenings import Outline, happened
from migrator.errors import FencedError, MigratorError
from migrator.model.observed.happening import (
    ENDED,
    ERROR,
    HOOK_FAILED,
    HOOKED,
    INFO,
    STARTED,
    WARNING,
    Happening,
)
from migrator.model.observed.observation import STARTING, Ended, Judged
from migrator.run.failure import Stopping
from migrator.run.progress import Progress, phase

EVERY_S = 1.0
_WAITING = 64
"""Events that wait for a slow hook at most; further ones are in the log alone."""

Log = Callable[[int, Happening], None]
"""Takes the moment, microseconds since 1970, and what happened then."""
Hook = Callable[[int, Happening], str]
"""Takes the same, and returns why it failed: an empty text where it didn't."""


class Journal:
    """The events of a run.

    Args:
        progress: of the run.
        judged: verdicts of verifications; may raise a ``MigratorError``.
        max_lag_s: the bound of the lag.
        log: takes every event.
        hook: takes those of ``HOOKED``; None: nobody wants them.
    """

    def __init__(
        self,
        progress: Progress,
        judged: Callable[[], Judged],
        max_lag_s: float,
        log: Log,
        hook: Hook | None = None,
    ):
        self._progress = progress
        self._judged = judged
        self._max_lag_s = max_lag_s
        self._log, self._hook = log, hook
        self._last = Outline(phase=STARTING)
        self._waiting: queue.Queue[tuple[int, Happening]] = queue.Queue(maxsize=_WAITING)

    def run(self, stopping: Stopping) -> None:
        """Looks until a stop is requested."""
        self.note(Happening(STARTED, "the run begins"))
        while not stopping.wait(EVERY_S):
            self.look()

    def serve(self, stopping: Stopping) -> None:
        """Calls the hook for what waits, until a stop is requested and nothing waits any more."""
        while not (stopping.requested() and self._waiting.empty()):
            with suppress(queue.Empty):
                self._call(*self._waiting.get(timeout=0.2))

    def look(self) -> None:
        """One look, and what happened since the last one."""
        now = self._outline()
        for one in happened(self._last, now, self._max_lag_s):
            self.note(one)
        self._last = now

    def ended(self, ended: Ended) -> None:
        """The end of the run, after a last look.

        A run that was refused since another one leads tells no hook: the migration goes on, nobody is to be woken.
        """
        self.look()
        words = ended.words or "it was told to, or had caught up"
        refused = ended.error == FencedError.__name__ and not self._progress.snapshot().led
        self.note(Happening(ENDED, words, ERROR if ended.error else INFO, ended.error), aloud=not refused)

    def note(self, one: Happening, aloud: bool = True) -> None:
        """Writes an event, and has the hook called for it if that is wanted and ``aloud``."""
        at_us = time.time_ns() // 1000
        self._log(at_us, one)
        if self._hook is not None and aloud and one.event in HOOKED:
            with suppress(queue.Full):
                self._waiting.put_nowait((at_us, one))

    def _call(self, at_us: int, one: Happening) -> None:
        if self._hook is not None and (failure := self._hook(at_us, one)):
            self._log(time.time_ns() // 1000, Happening(HOOK_FAILED, failure, WARNING, one.event))

    def _outline(self) -> Outline:
        now, judged = self._progress.snapshot(), Judged()
        with suppress(MigratorError):
            judged = self._judged()
        retention = now.retention
        return Outline(
            phase=phase(now),
            epoch=now.epoch,
            stood_by=now.standing_by or (self._last.stood_by and not now.epoch),
            note=now.note,
            warnings=dict(self._progress.warnings()),
            errors={names[0]: number for names, number in self._progress.work().errors},
            lag=self._progress.lag(),
            different=frozenset(one.table for one in judged.verified if one.verdict == "different"),
            endangered=retention.endangered if retention is not None else "",
        )
