"""The thread between the store of dump requests and the capture loop."""

from __future__ import annotations

import queue

from migrator.errors import MigratorError
from migrator.model.requests.request import DumpRequest, RequestBook, RequestState
from migrator.ports.requests import RequestStore
from migrator.run.capture.inputs import BookRead, Inputs
from migrator.run.capture.source_threads import hand_over
from migrator.run.failure import Stopping
from migrator.run.progress import Progress, Snapshot

_POLL_S = 0.5


class RequestPump:
    """Hands over what operators want, and writes down what became of it.

    A request is done when the target holds its last row, and not before: only then may its progress be forgotten. A
    store that can't be used now is told of, and asked again; the migration goes on meanwhile.

    Args:
        store: where requests are kept.
        seen: the book that the capture loop began with.
        inputs: where the pump hands over.
        progress: tells what was applied, and takes notes.
    """

    def __init__(self, store: RequestStore, seen: RequestBook, inputs: Inputs, progress: Progress):
        self._store = store
        self._seen = seen
        self._inputs = inputs
        self._progress = progress
        self._failed: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._to_close: dict[str, str] = {}
        self._noted = False

    def failed(self, name: str, reason: str) -> None:
        """Called by the capture loop: a request was given up."""
        self._failed.put((name, reason))

    def run(self, stopping: Stopping) -> None:
        """Looks twice a second until a stop is requested."""
        while not stopping.requested():
            self.look(stopping)
            stopping.wait(_POLL_S)

    def look(self, stopping: Stopping) -> None:
        """One look at the store: what became of requests goes in, what is wanted comes out."""
        while not self._failed.empty():
            name, reason = self._failed.get_nowait()
            self._to_close[name] = reason
        try:
            book = self._settled(self._store.read())
        except MigratorError as error:
            self._noted = True
            self._progress.set(note=f"dump requests: {error}; asking again")
            return
        if self._noted:
            self._noted = False
            self._progress.set(note="")
        self._progress.set(requests_left=book.running())
        if book != self._seen:
            self._seen = book
            hand_over(self._inputs, BookRead(book), stopping)

    def _settled(self, book: RequestBook) -> RequestBook:
        """The book, once it says of every request what became of it."""
        now = self._progress.snapshot()
        done = {
            request.name(): _progress_text(request, now)
            for request in book.requests
            if request.is_open() and _held(request, now)
        }
        if not done and not self._to_close:
            return book

        def closed(old: RequestBook) -> RequestBook:
            for name, outcome in done.items():
                old = old.close(name, RequestState.DONE, outcome)
            for name, reason in self._to_close.items():
                old = old.close(name, RequestState.FAILED, reason)
            return old

        book = self._store.update(closed)
        self._to_close.clear()
        return book


def _held(request: DumpRequest, now: Snapshot) -> bool:
    """Tells whether the target holds every row that the request asked for."""
    done = {dump.table for dump in now.applied_requests if dump.request == request.name() and dump.done}
    return done >= set(request.tables)


def _progress_text(request: DumpRequest, now: Snapshot) -> str:
    own = [dump for dump in now.applied_requests if dump.request == request.name()]
    rows, dropped, chunks = (
        sum(getattr(dump, name) for dump in own) for name in ("rows", "dropped_rows", "chunks")
    )
    return f"{rows:,} rows in {chunks:,} chunks; {dropped:,} dropped, because the log had something newer"
