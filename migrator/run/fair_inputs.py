"""The queue between the threads that read the source and the capture loop."""

from __future__ import annotations

import queue
from collections import deque

from migrator.run.source_threads import Input, Records


class FairInputs(queue.Queue[Input]):
    """Inputs such that the log waits for one chunk at most, however many workers have handed over theirs.

    What comes from the log and what comes from others take turns, each in its own order, so that neither can shut
    the other out. Between them any order is right: it is what threads may bring about anyway.
    """

    def _init(self, maxsize: int) -> None:
        self._log: deque[Input] = deque()
        self._others: deque[Input] = deque()
        self._log_next = True

    def _qsize(self) -> int:
        return len(self._log) + len(self._others)

    def _put(self, item: Input) -> None:
        (self._log if isinstance(item, Records) else self._others).append(item)

    def _get(self) -> Input:
        from_log = bool(self._log) and (self._log_next or not self._others)
        self._log_next = not from_log
        return (self._log if from_log else self._others).popleft()
