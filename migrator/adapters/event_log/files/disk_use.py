"""Size of an event log in bytes, for backpressure: asked at every turn of the capture loop, so counted now and
then."""

from __future__ import annotations

import time

from migrator.adapters.event_log.files.layout import Layout

_COUNT_EVERY_S = 0.5


class DiskUse:
    """Bytes of an event log, counted anew at most every half second."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._bytes = 0
        self._count_again = 0.0

    def total_bytes(self) -> int:
        """Bytes of data files and manifests."""
        now = time.monotonic()
        if now >= self._count_again:
            self._bytes = self._layout.total_bytes()
            self._count_again = now + _COUNT_EVERY_S
        return self._bytes

    def add(self, written_bytes: int) -> None:
        """Adds bytes written since the last count; the next count sees them anyway."""
        self._bytes += written_bytes
