"""A dump's consideration for those who work on the source: it takes a share of the time only, in short pieces."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.model.load import Load

FIRST_SAMPLES = 5
"""Samples in a row that must show nobody before a dump goes at full speed: asked quickly, a fraction of a second."""
QUIET_SAMPLES = 10
"""Samples in a row that must show nobody once somebody was there: one who works now and then is not in each."""
SURE_SAMPLES = 2
"""Samples in a row that must show somebody: what a server counts one after the other may take one of ours for
another."""
SHORTER = 4
"""While others work, a read should take a fourth of its usual time: what waits behind it waits less long."""
QUICKLY_S, ALONE_S, BESIDE_OTHERS_S = 0.04, 0.25, 1.0
"""Seconds between two looks: until it is known whether others work, while nobody does, while others do."""


class Throttle:
    """Knowledge whether others work on the source, and how long reading rests for their sake.

    Nothing is known before the first sample, and whoever reads is gentle then. ``FIRST_SAMPLES`` in a row without a
    session of others at work: nobody is there, until one shows such a session; then it isn't known again.
    Others are there once ``SURE_SAMPLES`` in a row show one, or a sample can't show any, until
    ``QUIET_SAMPLES`` show none.
    """

    def __init__(self) -> None:
        self._known = False
        self._others = False
        self._seen = self._quiet = 0
        self._latest_s = 0.0

    @property
    def gentle(self) -> bool:
        """Tells whether others work, or may."""
        return self._others or not self._known

    @property
    def look_again_s(self) -> float:
        """Returns after how many seconds the next sample should be taken."""
        if not self._known:
            return QUICKLY_S
        return BESIDE_OTHERS_S if self._others else ALONE_S

    def sampled(self, load: Load | None) -> None:
        """The source is this busy; None: nobody looks any more."""
        if load is None:
            self._known = self._others = False
            self._seen = self._quiet = 0
        elif load.active_sessions == 0 and not load.lately:
            self._seen, self._quiet = 0, self._quiet + 1
            if self._quiet >= (QUIET_SAMPLES if self._others else FIRST_SAMPLES):
                self._known, self._others = True, False
        else:
            self._seen, self._quiet = self._seen + 1, 0
            sure = load.active_sessions is None or self._seen >= SURE_SAMPLES
            self._others = self._others or sure
            self._known = self._others

    def note(self, elapsed_s: float) -> None:
        """A read took so long."""
        self._latest_s = elapsed_s

    def rest_s(self, share: float) -> float:
        """Returns how many seconds to rest after the latest read so that reads take ``share`` (0 < share <= 1) of the
        time."""
        return self._latest_s * (1 / share - 1) if self.gentle else 0.0


def p95(values: Sequence[float]) -> float:
    """The 95th percentile; of fewer than 20 values the largest."""
    return sorted(values)[max(0, -(-95 * len(values) // 100) - 1)]
