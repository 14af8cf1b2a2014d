"""The judgement whether a migration's resources stay bounded: a rule over samples. Pure.

A series is judged by the growth that a straight line through it shows, over the stretch after the warm-up.
The line's slope is the median of the slopes between all pairs of samples (Theil and Sen): a spike, or a saw's
teeth, hardly move it; a leak does, however slow, once it lasts. What belongs to a process is judged within
the life of each process, since a kill gives all of it back; a life that is too short to be judged says
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from verify.history.result import Outcome

WARM_UP = 1 / 3
"""Share of a life before which nothing is judged: caches fill, the compiler works, heaps grow to their size."""
LEAST_SAMPLES = 20
"""The least number of samples after the warm-up; fewer show no line."""
_MOST_SAMPLES = 240
"""The number of pairs is the square of it; a longer series is thinned out evenly."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The growth that a series may show over the judged stretch, by the line through it: the larger of the two.

    Attributes:
        share: of its level where the stretch begins.
        floor: in its own unit; what noise alone brings.
    """

    share: float
    floor: float

    def allowed(self, level: float) -> float:
        """The growth that counts as none."""
        return max(self.share * level, self.floor)


MIB = 1 << 20
MEMORY = Bound(0.10, 48 * MIB)
BOUNDS: Mapping[str, Bound] = {
    "python_bytes": MEMORY,
    "jvm_bytes": MEMORY,
    "workers_bytes": MEMORY,
    "threads": Bound(0.05, 3),
    "descriptors": Bound(0.05, 6),
    "state_bytes": Bound(0.25, 16 * MIB),
    "source_log_bytes": Bound(0.25, 64 * MIB),
    "source_connections": Bound(0.0, 3),
    "target_connections": Bound(0.0, 3),
}
"""Every figure of a sample. Those of processes come first; the last four outlive them."""
OF_A_PROCESS = ("python_bytes", "jvm_bytes", "workers_bytes", "threads", "descriptors")


@dataclass(frozen=True, slots=True)
class Sample:
    """Measurements of a migration at one moment.

    Attributes:
        at_s: since the soak began.
        life: number of the process that ran, from 1.
        figures: by the names of ``BOUNDS``; what couldn't be read is left out.
    """

    at_s: float
    life: int
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure's verdict.

    Attributes:
        figure: its name.
        outcome: bounded, growing, or unknown where no stretch was long enough.
        level: where the worst stretch begins, on its line.
        growth: from there to its end, on its line.
        allowed: see ``Bound``.
        stretch_s: how long that stretch is.
        samples: how many were judged, over all stretches.
    """

    figure: str
    outcome: Outcome
    level: float = 0.0
    growth: float = 0.0
    allowed: float = 0.0
    stretch_s: float = 0.0
    samples: int = 0


def judged(samples: Sequence[Sample], bounds: Mapping[str, Bound] = BOUNDS) -> tuple[Finding, ...]:
    """A finding for each figure, of its worst stretch."""
    return tuple(_finding(figure, bound, samples) for figure, bound in bounds.items())


def overall(findings: Sequence[Finding]) -> Outcome:
    """Violated if anything grows, unknown if anything is (or nothing was looked at), else it holds."""
    found = {finding.outcome for finding in findings}
    order = (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.HOLDS)
    return next((outcome for outcome in order if outcome in found), Outcome.UNKNOWN)


def _finding(figure: str, bound: Bound, samples: Sequence[Sample]) -> Finding:
    stretches = [
        stretch for life in _lives(figure, samples) if len(stretch := _after_warm_up(life)) >= LEAST_SAMPLES
    ]
    lines = [(stretch, *_line(stretch)) for stretch in stretches]
    if not lines:
        return Finding(figure, Outcome.UNKNOWN)
    stretch, level, growth = max(lines, key=lambda line: line[2] - bound.allowed(line[1]))
    allowed = bound.allowed(level)
    return Finding(
        figure,
        Outcome.VIOLATED if growth > allowed else Outcome.HOLDS,
        level,
        growth,
        allowed,
        stretch[-1][0] - stretch[0][0],
        sum(map(len, stretches)),
    )


def _lives(figure: str, samples: Sequence[Sample]) -> list[list[tuple[float, float]]]:
    """The figure's points; if the figure belongs to a process, one list for each process."""
    lives: dict[int, list[tuple[float, float]]] = {}
    for sample in samples:
        if figure in sample.figures:
            life = sample.life if figure in OF_A_PROCESS else 0
            lives.setdefault(life, []).append((sample.at_s, sample.figures[figure]))
    return list(lives.values())


def _after_warm_up(life: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    first, last = life[0][0], life[-1][0]
    return [(at_s, value) for at_s, value in life if at_s >= first + WARM_UP * (last - first)]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Level where the points begin, and growth to where they end."""
    thinned = points[:: -(-len(points) // _MOST_SAMPLES)]
    slope = median((b - a) / (t - s) for (s, a), (t, b) in combinations(thinned, 2) if t > s)
    began = points[0][0]
    level = median(value - slope * (at_s - began) for at_s, value in thinned)
    return level, slope * (points[-1][0] - began)
