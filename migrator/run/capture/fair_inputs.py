"""The queue between the threads that read the source and the capture loop."""

from __future__ import annotations

import queue
from collections import deque

from migrator.model.event import TransactionPart
from migrator.run.capture.inputs import Halted, Input, Records

MOST_BYTES = 64 << 20
"""Bytes of row changes held at a time; a single input may be larger."""


class FairInputs(queue.Queue[Input]):
    """Inputs such that the log waits for one chunk at most, however many workers have handed over theirs.

    What comes from the log and what comes from others take turns, each in its own order, so that neither can shut
    the other out. Between them any order is right: it is what threads may bring about anyway.

    It is full by number or by bytes: sixteen parts of a transaction with rows of 16 MB would be a gigabyte.
    """

    def _init(self, maxsize: int) -> None:
        self._log: deque[tuple[Records | Halted, int]] = deque()
        self._others: deque[Input] = deque()
        self._log_next = True
        self._bytes = 0

    def _qsize(self) -> int:
        held = len(self._log) + len(self._others)
        return max(held, self.maxsize) if self._bytes >= MOST_BYTES else held

    def _put(self, item: Input) -> None:
        if not isinstance(item, Records | Halted):
            self._others.append(item)
            return
        size = _bytes(item)
        self._bytes += size
        self._log.append((item, size))

    def _get(self) -> Input:
        from_log = bool(self._log) and (self._log_next or not self._others)
        self._log_next = not from_log
        if not from_log:
            return self._others.popleft()
        item, size = self._log.popleft()
        self._bytes -= size
        return item


def _bytes(item: Records | Halted) -> int:
    if isinstance(item, Halted):
        return 0
    return sum([run.bytes for part in item.records if isinstance(part, TransactionPart) for run in part.runs])
