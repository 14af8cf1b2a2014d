"""Rows set aside whose parent came: the run itself has their source rows dumped again, in order with its changes.

The ledger says which they are, in the transaction that brought the parent. So a run that was killed in between asks
at its next start, and one that asked already asks no second time while its request is open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from migrator.errors import MigratorError
from migrator.model.progress import BadRow
from migrator.model.requests.request import RequestBook
from migrator.ports.requests import RequestStore
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_ABOUT = "bad rows"
_LOOK_S = 0.1
_AGAIN_S = 5.0


class Retries:
    """The rows of one process's runs that can be tried again.

    Args:
        rows: returns the rows that the ledger names as set aside.
        ask: has their source rows dumped again; what it doesn't do by itself, in words.
        requests: where that is asked for.
    """

    def __init__(
        self,
        rows: Callable[[], Sequence[BadRow]],
        ask: Callable[[Sequence[BadRow]], str],
        requests: RequestStore,
    ):
        self._rows, self._ask, self._requests = rows, ask, requests
        self._came = threading.Event()
        self._progress: Progress | None = None
        self._asked: set[tuple[str, tuple[str, ...], int]] = set()

    def came(self) -> None:
        """Called by whoever applies, once the ledger has such rows: a run that is to catch up waits for them."""
        self._came.set()
        if self._progress is not None:
            self._progress.set(retrying=True)

    def begin(self, progress: Progress) -> None:
        """Has a run wait for what its ledger had when it was opened."""
        self._progress = progress
        progress.set(retrying=self._came.is_set())
        progress.warn(_ABOUT)

    def run(self, progress: Progress, stopping: Stopping) -> None:
        """Asks for rows until a stop is requested. A server that gives no answer is asked again."""
        while not stopping.wait(_LOOK_S):
            if not self._came.is_set():
                continue
            self._came.clear()
            try:
                left = self._asked_for(stopping, progress)
            except MigratorError as error:
                left = f"rows set aside whose parent came wait for `migrator rows retry`: {error}"
                if error.retryable:
                    self._came.set()
                    stopping.wait(_AGAIN_S)
            progress.warn(_ABOUT, *([left] if left else []))
            progress.set(retrying=self._came.is_set())

    def _asked_for(self, stopping: Stopping, progress: Progress) -> str:
        """Asks for what wasn't asked for; what an operator has to do, in words."""
        book = self._requests.read()
        open_doubts = _doubted(book)
        due = [one for one in self._rows() if one.parent is not None and one.parent.came and not one.dropped]
        due = [one for one in due if (one.target, one.key, one.segment) not in self._asked]
        new = [one for one in due if (one.target, one.key) not in open_doubts]
        if not new:
            return ""
        left = self._ask(new)
        self._asked |= {(one.target, one.key, one.segment) for one in due}
        # Until the run knows of the requests, it must not take itself for one that has caught up.
        while not (progress.snapshot().requests_left or _closed(book, self._requests.read())):
            if stopping.wait(_LOOK_S):
                break
        return left


def _doubted(book: RequestBook) -> set[tuple[str, tuple[str, ...]]]:
    """The target rows that open requests decide on."""
    return {
        (doubt.target, key)
        for request in book.requests
        if request.is_open()
        for doubt in request.doubts
        for key in doubt.keys
    }


def _closed(before: RequestBook, now: RequestBook) -> bool:
    """Tells whether all requests that came since are closed."""
    known = {request.name() for request in before.requests}
    return all(not request.is_open() for request in now.requests if request.name() not in known)
