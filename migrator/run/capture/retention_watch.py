"""Watches how close the source is to giving up log that isn't captured yet, and warns in time.

Nothing depends on it: what is lost is found by the log reader, as a gap. The time by which capture is behind
needs no clock of a server and no rights: the end of the source's log is asked now and then, and the newest
answer that capture has passed since tells up to which moment everything is captured.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from migrator.errors import MigratorError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.retention import Retention
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_EVERY_S = 10.0
_WARN_AT = 0.5
_REMEMBERED = 10_000
_ABOUT = "source log"


class Behind:
    """An upper bound, in seconds, of how far capture is behind the source.

    Args:
        before_s: how old the newest captured change was at the first look.
    """

    def __init__(self, before_s: float = 0.0):
        self._before_s = before_s
        self._ends: deque[tuple[float, Position]] = deque(maxlen=_REMEMBERED)
        self._reached: float | None = None

    def look(self, now_s: float, end: Position, captured: Position | None) -> float:
        """``now_s`` by a steady clock, where the source's log ends now, and what is captured durably."""
        if self._reached is None:
            self._reached = now_s - self._before_s
        self._ends.append((now_s, end))
        while captured is not None and self._ends and self._ends[0][1] <= captured:
            self._reached = self._ends.popleft()[0]
        return now_s - self._reached


def age_s(checkpoint: Checkpoint | None) -> float:
    """Returns how many seconds ago the newest change of a checkpoint was committed; 0 where it knows none."""
    newest_us = max((at_us for _, at_us in checkpoint.last_changes), default=0) if checkpoint else 0
    return max(0.0, time.time() - newest_us / 1e6) if newest_us else 0.0


def warnings(found: Retention, behind_s: float) -> list[str]:
    """Returns warnings for an operator, in words; none while there is plenty of time."""
    texts = []
    if found.endangered:
        texts.append(f"{found.endangered}: {found.remedy}")
    elif found.left_bytes is not None and found.left_bytes < _WARN_AT * (found.bound_bytes or 0):
        texts.append(
            f"the source keeps {_mib(found.bound_bytes or 0)} of log for this migration, and gives up what it needs"
            f" after {_mib(max(0, found.left_bytes))} more: {found.remedy}"
        )
    if found.expiry_s and behind_s > _WARN_AT * found.expiry_s:
        texts.append(
            f"capture is up to {_hours(behind_s)} behind, the source gives up its log after {_hours(found.expiry_s)}:"
            f" {found.remedy}"
        )
    return texts


class RetentionWatch:
    """Looks every ten seconds and leaves warnings. A source that can't be asked is asked again.

    Args:
        ask: the source, given what is captured durably.
        progress: where capture stands; takes the warnings.
        checkpoint: where capture goes on from.
    """

    def __init__(
        self,
        ask: Callable[[Position | None], Retention],
        progress: Progress,
        checkpoint: Checkpoint | None,
    ):
        self._ask = ask
        self._progress = progress
        self._behind = Behind(age_s(checkpoint))

    def run(self, stopping: Stopping) -> None:
        """Watches until a stop is requested."""
        while not stopping.requested():
            self.look(time.monotonic())
            stopping.wait(_EVERY_S)

    def look(self, now_s: float) -> None:
        """One look, ``now_s`` by a steady clock."""
        captured = self._progress.snapshot().captured
        try:
            found = self._ask(captured)
        except MigratorError as error:
            self._progress.warn(_ABOUT, f"{error.what}: nobody knows how long the source keeps its log")
            self._progress.set(retention=None)
            return
        self._progress.set(retention=found)
        self._progress.warn(_ABOUT, *warnings(found, self._behind.look(now_s, found.end, captured)))


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds:,.0f} s"
