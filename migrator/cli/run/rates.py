"""Rates and remaining times of a run, from what its counters were."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from migrator.model.progress import TableDump
from migrator.run.progress import Snapshot

_NOW_S = 5.0
"""Seconds over which a present rate is taken."""
_SMOOTH_S = 180.0
"""Seconds over which the rate of a dump is taken for its remaining time: over a few, it would jump."""
_APART_S = 1.0
"""Seconds between two of the snapshots that are kept."""


class Rates:
    """Rates over the last seconds, and remaining times by those of the last minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: deque[tuple[float, Snapshot]] = deque()
        self._latest: tuple[float, Snapshot] | None = None

    def note(self, now: Snapshot) -> None:
        """Takes the counters as they are now."""
        moment = self._clock()
        self._latest = (moment, now)
        if not self._kept or moment - self._kept[-1][0] >= _APART_S:
            self._kept.append(self._latest)
        while len(self._kept) > 2 and moment - self._kept[0][0] > _SMOOTH_S:
            self._kept.popleft()

    def changes_per_s(self) -> float:
        """Changes applied a second."""
        return self._rate(lambda snapshot: snapshot.applied_changes, _NOW_S)

    def rows_per_s(self) -> float:
        """Rows of dumps captured a second."""
        return self._rate(lambda snapshot: sum(map(_seen, snapshot.dumps)), _NOW_S)

    def eta_s(self, dump: TableDump) -> float | None:
        """Seconds until a table is dumped; None where its size isn't known, or nothing of it was read lately."""

        def rows(snapshot: Snapshot) -> int:
            return sum(_seen(other) for other in snapshot.dumps if other.table == dump.table)

        rate = self._rate(rows, _SMOOTH_S, since=lambda snapshot: rows(snapshot) > 0)
        left = max(0, dump.estimated_rows - _seen(dump))
        return left / rate if rate and dump.estimated_rows else None

    def _rate(
        self,
        value: Callable[[Snapshot], int],
        window_s: float,
        since: Callable[[Snapshot], bool] = lambda _: True,
    ) -> float:
        """The rise of a value a second, over ``window_s`` at most, from the first snapshot on for which ``since``
        holds."""
        if self._latest is None:
            return 0.0
        end, last = self._latest
        for start, first in self._kept:
            if end - start <= window_s and since(first):
                return (value(last) - value(first)) / (end - start) if end > start else 0.0
        return 0.0


def _seen(dump: TableDump) -> int:
    return dump.rows + dump.dropped_rows
