"""Dump requests in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable

from migrator.model.requests.request import RequestBook


class MemoryRequests:
    """A ``RequestStore`` for one process."""

    def __init__(self) -> None:
        self._book = RequestBook()
        self._lock = threading.Lock()

    def read(self) -> RequestBook:
        """The book as of now."""
        return self._book

    def update(self, change: Callable[[RequestBook], RequestBook]) -> RequestBook:
        """Replaces the book."""
        with self._lock:
            self._book = change(self._book)
            return self._book
