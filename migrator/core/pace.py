"""The size of chunks and the rest between their reads: adaptation, the operator's pace, throttles."""

from __future__ import annotations

from collections import deque

from migrator.core.throttle import BESIDE_OTHERS_S, SHORTER, Throttle, p95
from migrator.model.limits import CaptureLimits
from migrator.model.load import Load
from migrator.model.requests.request import Pace
from migrator.model.table import TableId

_LATEST = 20
_LONGEST_REST_S = 10.0
_SHORTEST_REST_S = 0.05
_FIRST_REST_S = 0.1
_SAMPLE_ROWS = 1_000
"""Rows of a chunk of a table whose rows were not weighed yet."""


class Pacer:
    """Chunk size and rest, from the times and sizes of chunk reads.

    Every table has a size of its own, since one may have wide rows and another narrow ones. It aims at
    ``CaptureLimits.chunk_target_s``, or is the operator's, and in any case at no more than ``chunk_bytes``. With
    ``Pace.p95_s``: when the 95th percentile of the latest reads (of fewer than 20: the slowest) is above the bound,
    chunks are halved down to ``chunk_rows_min`` and the rest is doubled up to 10 s; each read below it takes both a
    step back.

    While the source is busier than a bound allows, one worker reads, and the rest is doubled at each sample, up to
    10 s; each sample within the bounds halves it again.

    While others work on the source, and until it is known whether they do, one worker reads, in smaller chunks, for
    ``dump_share`` of the time (see ``core.throttle``).

    Args:
        limits: the bounds of the adaptation.
        pace: what the operator wants.
        metered: whether there will be samples of the source's load.
    """

    def __init__(self, limits: CaptureLimits, pace: Pace, metered: bool = True):
        self._limits = limits
        self._metered = metered
        self._adapted_rows: dict[TableId, int] = {}
        self._row_bytes: dict[TableId, float] = {}
        self._ceiling_rows = limits.chunk_rows_max
        self._rest_s = 0.0
        self._load_rest_s = 0.0
        self._times_s: deque[float] = deque(maxlen=_LATEST)
        self._load_throttle = Throttle()
        self._pace = pace

    def follow(self, pace: Pace) -> None:
        """Takes the pace that the operator wants from now on."""
        if pace.p95_s != self._pace.p95_s:
            self._times_s.clear()
            self._ceiling_rows, self._rest_s = self._limits.chunk_rows_max, 0.0
        self._pace = pace
        if self.bounds == Load():
            self._load_rest_s = 0.0

    def limit_rows(self, table: TableId) -> int:
        """Rows of the table's next chunk at most."""
        wanted = self._pace.chunk_rows or self._adapted_rows.get(table, self._limits.chunk_rows)
        row_bytes = self._row_bytes.get(table)
        weighed = _SAMPLE_ROWS if row_bytes is None else max(1, int(self._limits.chunk_bytes / row_bytes))
        return min(wanted, self._ceiling_rows, weighed)

    @property
    def workers(self) -> int:
        """Returns how many reads may be under way."""
        return 1 if self._load_rest_s or self._yields else self._pace.workers or self._limits.dump_workers

    @property
    def rest_s(self) -> float:
        """Returns how many seconds to rest before the next read."""
        owed_s = min(_LONGEST_REST_S, self._load_throttle.rest_s(self.share)) if self._yields else 0.0
        return self._pace.delay_s + self._rest_s + max(self._load_rest_s, owed_s)

    @property
    def share(self) -> float:
        """Returns the share of the time for chunk reads while others work on the source; 1: all the time."""
        return self._pace.share or self._limits.dump_share

    @property
    def watches(self) -> bool:
        """Tells whether it matters how busy the source is."""
        return self.share < 1 or self.bounds != Load()

    @property
    def look_again_s(self) -> float:
        """Returns after how many seconds the source should be asked once more how busy it is."""
        return self._load_throttle.look_again_s if self.share < 1 else BESIDE_OTHERS_S

    @property
    def _yields(self) -> bool:
        return self._metered and self.share < 1 and self._load_throttle.gentle

    @property
    def bounds(self) -> Load:
        """Returns how busy the source may be; None is no bound."""
        sessions = self._pace.active_sessions or self._limits.max_active_sessions
        return Load(sessions or None, self._pace.replica_lag_s or self._limits.max_replica_lag_s or None)

    def sampled(self, load: Load | None) -> str:
        """The source is this busy (None: nobody looks any more); what there is to say about it, or an empty
        text."""
        self._load_throttle.sampled(load)
        if load is None:
            self._load_rest_s = 0.0
            return ""
        said, above = [], False
        for what, bound, found in (
            ("active sessions", self.bounds.active_sessions, load.active_sessions),
            ("replica lag in s", self.bounds.replica_lag_s, load.replica_lag_s),
        ):
            if bound is not None and found is None:
                said.append(f"{what} can't be seen, so they bound nothing")
            if bound is not None and found is not None and found > bound:
                said.append(f"{what}: {found:g}, above {bound:g}; the dump slows down")
                above = True
        if above:
            self._load_rest_s = min(_LONGEST_REST_S, max(2 * self._load_rest_s, _FIRST_REST_S))
        else:
            self._load_rest_s = self._load_rest_s / 2 if self._load_rest_s > _FIRST_REST_S else 0.0
        return f"source load: {', '.join(said)}" if said else ""

    def weigh(self, table: TableId, rows: int, size_bytes: int) -> None:
        """A chunk had so many rows, of so many bytes. Wider rows count at once, narrower ones by and by."""
        if rows:
            found = max(1.0, size_bytes / rows)
            known = self._row_bytes.get(table, found)
            self._row_bytes[table] = max(found, (known + found) / 2)

    def note(self, table: TableId, limit_rows: int, elapsed_s: float, full: bool) -> None:
        """A read of at most so many rows took so long.

        ``full``: it had as much to do as it might; only then does it tell about the size.
        """
        limits = self._limits
        self._load_throttle.note(elapsed_s)
        if full:
            self._adapted_rows[table] = next_limit(
                limit_rows,
                elapsed_s,
                target_s=limits.chunk_target_s / SHORTER if self._yields else limits.chunk_target_s,
                least=limits.chunk_rows_min,
                most=limits.chunk_rows_max,
            )
        if self._pace.p95_s:
            self._throttle(limit_rows, elapsed_s)

    def _throttle(self, limit_rows: int, elapsed_s: float) -> None:
        self._times_s.append(elapsed_s)
        slow = p95(self._times_s) > self._pace.p95_s
        if slow:
            self._ceiling_rows = max(self._limits.chunk_rows_min, min(limit_rows, self._ceiling_rows) // 2)
            self._rest_s = min(_LONGEST_REST_S, max(2 * self._rest_s, elapsed_s))
            self._times_s.clear()  # what was slow has had its answer
        else:
            self._ceiling_rows = min(self._limits.chunk_rows_max, self._ceiling_rows * 5 // 4 + 1)
            self._rest_s = self._rest_s / 2 if self._rest_s > _SHORTEST_REST_S else 0.0


def next_limit(limit_rows: int, elapsed_s: float, *, target_s: float, least: int, most: int) -> int:
    """Rows for the next chunk so that a read takes about ``target_s``; at most doubled or halved at a time."""
    if elapsed_s <= 0:
        return most
    wanted = limit_rows * target_s / elapsed_s
    return int(min(most, max(least, min(2 * limit_rows, max(limit_rows / 2, wanted)))))
