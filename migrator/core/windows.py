"""DBLog's windows: keys touched in the log between a chunk's low and high watermark."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from migrator.core.touched import EVERY_KEY
from migrator.model.event import ChangeRun, Key, MarkKind, WatermarkSeen
from migrator.model.table import TableId


@dataclass(slots=True)
class Window:
    """Keys of one chunk's table touched since its low watermark came by (``EVERY_KEY``: too many)."""

    table: TableId
    keys: set[Key] | None
    high_seen: bool = False


class Windows(dict[str, Window]):
    """The open windows by watermark token.

    Args:
        max_keys: bound of keys remembered per window.
    """

    def __init__(self, max_keys: int):
        super().__init__()
        self._max_keys = max_keys

    def note(self, table: TableId, run: ChangeRun) -> None:
        """The log has these changes of the table."""
        windows = [
            window for window in self.values() if window.table == table and window.keys is not EVERY_KEY
        ]
        if not windows:
            return
        keys = set(chain.from_iterable(run.codec.keys(run.items)))
        for window in windows:
            window.keys = keys | (window.keys or set())
            if run.empties or len(window.keys) > self._max_keys:
                window.keys = EVERY_KEY

    def mark(self, seen: WatermarkSeen) -> bool:
        """Notes a watermark, and tells whether a window ended with it. One of an earlier attempt has a stale
        token."""
        window = self.get(seen.token)
        if window is None:
            return False
        if seen.kind is MarkKind.LOW:
            window.keys = set()
            return False
        window.high_seen = True
        return True
