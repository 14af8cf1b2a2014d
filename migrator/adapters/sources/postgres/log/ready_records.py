"""Records that were read and not handed out yet.

The server says after each commit how far it is, also after those of tables that nobody captures. Handing out
each of these places costs more than reading it, so they are gathered for a moment, and what brings them is
read together.
"""

from __future__ import annotations

import time

from migrator.model.event import LogProgress, LogRecord
from migrator.model.position import Position

_PROGRESS_EVERY_S = 0.02


class ReadyRecords:
    """Records that are ready, in the log's order; of places that follow each other only the last."""

    def __init__(self) -> None:
        self._records: list[LogRecord] = []
        self._progress_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._records)

    def append(self, record: LogRecord) -> None:
        """One more."""
        self._records.append(record)

    def progress(self, position: Position) -> None:
        """The log has been read so far."""
        if self._records and isinstance(self._records[-1], LogProgress):
            self._records.pop()
        self._records.append(LogProgress(position))

    def first(self, position: Position) -> None:
        """Reading begins here, before what came already."""
        if not self._records:
            self._records.append(LogProgress(position))

    def only_progress(self) -> bool:
        """Tells whether there is nothing but a place."""
        return len(self._records) == 1 and isinstance(self._records[0], LogProgress)

    def wait_until(self, until: float) -> float:
        """Returns until when, at most ``until``, more is worth waiting for; by the monotonic clock."""
        if not self._records:
            return until
        return min(until, self._progress_at + _PROGRESS_EVERY_S) if self.only_progress() else 0.0

    def take(self) -> list[LogRecord]:
        """All of them, handed out."""
        if self.only_progress():
            self._progress_at = time.monotonic()
        records, self._records = self._records, []
        return records
