"""What a dump owes to those who work on the source: a share of the time only, in short pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from migrator.model.load import Load

QUIET_SAMPLES = 10
"""So many samples in a row must show nobody at work: a session that works now and then is not seen in each."""
SURE_SAMPLES = 2
"""So many in a row must show somebody: what a server counts one after the other may take one of ours for another."""
SHORTER = 4
"""While others work, a read should take a fourth of its usual time: what waits behind it waits less long."""
_LATEST = 20


class Courtesy:
    """Whether others work on the source, and how long reading rests for their sake.

    Others are there once ``SURE_SAMPLES`` in a row show an active session of theirs, or one can't show any, until
    ``QUIET_SAMPLES`` in a row show none. Nobody is there before the first sample.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._quiet = QUIET_SAMPLES
        self._times_s: deque[float] = deque(maxlen=_LATEST)

    @property
    def others_work(self) -> bool:
        """Whether they do."""
        return self._quiet < QUIET_SAMPLES

    def sampled(self, load: Load | None) -> None:
        """The source is this busy; None: nobody looks any more."""
        if load is None:
            self._seen, self._quiet = 0, QUIET_SAMPLES
        elif load.active_sessions == 0:
            self._seen, self._quiet = 0, self._quiet + 1
        else:
            self._seen += 1
            if load.active_sessions is not None and self._seen < SURE_SAMPLES and not self.others_work:
                return
            if not self.others_work:
                self._times_s.clear()  # those were longer reads
            self._quiet = 0

    def note(self, elapsed_s: float) -> None:
        """A read took so long."""
        self._times_s.append(elapsed_s)

    def rest_s(self, share: float) -> float:
        """How long to rest after a read so that reads take ``share`` (above 0, at most 1) of the time."""
        if not self.others_work or not self._times_s:
            return 0.0
        return p95(self._times_s) * (1 / share - 1)


def p95(values: Sequence[float]) -> float:
    """The 95th percentile; of fewer than 20 values the largest."""
    return sorted(values)[max(0, -(-95 * len(values) // 100) - 1)]
