"""Tells a batch reader in the same process that a segment was created, so that it needn't poll."""

from __future__ import annotations

import threading


class SegmentSignal:
    """The newest number created, and a way to wait for it. One writer announces, any number of readers wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._newest = 0

    def announce(self, number: int) -> None:
        """Segment ``number`` exists from now on."""
        with self._condition:
            self._newest = max(self._newest, number)
            self._condition.notify_all()

    def wait(self, number: int, timeout_s: float) -> bool:
        """Returns as soon as ``number`` was announced; False after ``timeout_s`` without it."""
        with self._condition:
            return self._condition.wait_for(lambda: self._newest >= number, timeout_s)
