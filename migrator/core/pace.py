"""How large chunks are and how long reading rests between them: adaptation, the operator's pace, throttle."""

from __future__ import annotations

from collections import deque

from migrator.core.dump import next_limit
from migrator.model.limits import CaptureLimits
from migrator.model.request import Pace

_LATEST = 20
_LONGEST_REST_S = 10.0
_SHORTEST_REST_S = 0.05


class Pacer:
    """Chunk size and rest, from the times that chunk reads took.

    Without ``Pace.p95_s`` the size aims at ``CaptureLimits.chunk_target_s``, or is the operator's. With it: when the
    95th percentile of the latest reads (of fewer than 20: the slowest) is above the bound, chunks are halved down to
    ``chunk_rows_min`` and the rest is doubled up to 10 s; each read below it takes both a step back.

    Args:
        limits: the bounds of the adaptation.
        pace: what the operator wants.
    """

    def __init__(self, limits: CaptureLimits, pace: Pace):
        self._limits = limits
        self._adapted_rows = limits.chunk_rows
        self._ceiling_rows = limits.chunk_rows_max
        self._rest_s = 0.0
        self._times_s: deque[float] = deque(maxlen=_LATEST)
        self._pace = pace

    def follow(self, pace: Pace) -> None:
        """What the operator wants from now on."""
        if pace.p95_s != self._pace.p95_s:
            self._times_s.clear()
            self._ceiling_rows, self._rest_s = self._limits.chunk_rows_max, 0.0
        self._pace = pace

    @property
    def limit_rows(self) -> int:
        """Rows of the next chunk at most."""
        return min(self._pace.chunk_rows or self._adapted_rows, self._ceiling_rows)

    @property
    def rest_s(self) -> float:
        """How long to rest before the next read, in seconds."""
        return self._pace.delay_s + self._rest_s

    def note(self, elapsed_s: float, full: bool) -> None:
        """A read took so long. ``full``: it held as many rows as it might; only then does it tell about the size."""
        limits = self._limits
        if full:
            self._adapted_rows = next_limit(
                self.limit_rows,
                elapsed_s,
                target_s=limits.chunk_target_s,
                least=limits.chunk_rows_min,
                most=limits.chunk_rows_max,
            )
        if self._pace.p95_s:
            self._throttle(elapsed_s)

    def _throttle(self, elapsed_s: float) -> None:
        self._times_s.append(elapsed_s)
        slow = sorted(self._times_s)[max(0, -(-95 * len(self._times_s) // 100) - 1)] > self._pace.p95_s
        if slow:
            self._ceiling_rows = max(self._limits.chunk_rows_min, self.limit_rows // 2)
            self._rest_s = min(_LONGEST_REST_S, max(2 * self._rest_s, elapsed_s))
            self._times_s.clear()  # what was slow has had its answer
        else:
            self._ceiling_rows = min(self._limits.chunk_rows_max, self._ceiling_rows * 5 // 4 + 1)
            self._rest_s = self._rest_s / 2 if self._rest_s > _SHORTEST_REST_S else 0.0
