"""Decides when the next batch is read: as late as its target rows can be ready by the time the target is.

A batch holds what the event log had when it was read. One that is read too soon waits, mapped, for the transactions
before it, and changes that come meanwhile wait for the batch behind it: each batch that waits makes the lag longer
by a whole transaction. One that is read too late leaves the target idle.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from migrator.run.failure import Stopping

_REMEMBERED = 4
"""Batches whose times are remembered: those of a dump are unlike those of a stream."""
_SPARE = 2.0
"""Factor by which mapping may take longer than it did lately before the target has to wait."""
_SPARE_S = 0.01
_LOOK_S = 0.2


class ReadAhead:
    """The times that the last batches took, and the moment from which the next one is worth reading.

    One thread maps, another one applies.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]):
        self._clock = clock
        self._condition = threading.Condition()
        self._mapped_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._applied_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._waiting = 0
        self._applying_since: float | None = None

    def mapped(self, seconds: float) -> None:
        """A batch waits for the target; reading and mapping it took this long."""
        with self._condition:
            self._mapped_s.append(seconds)
            self._waiting += 1

    @contextmanager
    def applying(self) -> Iterator[None]:
        """The time within it is that of a batch that the target takes."""
        with self._condition:
            self._applying_since = began_s = self._clock()
        try:
            yield
        finally:
            with self._condition:
                self._applied_s.append(self._clock() - began_s)
                self._applying_since = None
                self._waiting -= 1
                self._condition.notify_all()

    def early_s(self) -> float:
        """Counts the seconds by which it is too early to read; 0 where the target would wait otherwise.

        The target is expected to be as quick as its quickest batch of late was, mapping as slow as its slowest: in
        doubt a batch waits, and not the target.
        """
        with self._condition:
            return self._early_s()

    def _early_s(self) -> float:
        if not self._waiting or not self._applied_s:
            return 0.0
        one_s = min(self._applied_s)
        spent_s = 0.0 if self._applying_since is None else self._clock() - self._applying_since
        busy_s = max(0.0, one_s - spent_s) + one_s * (self._waiting - 1)
        return max(0.0, busy_s - _SPARE * max(self._mapped_s, default=0.0) - _SPARE_S)

    def wait(self, stopping: Stopping) -> None:
        """Waits until it is time to read, or a stop is requested."""
        with self._condition:
            while not stopping.requested() and (early_s := self._early_s()) > 0:
                self._condition.wait(min(early_s, _LOOK_S))
