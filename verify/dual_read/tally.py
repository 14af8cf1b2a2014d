"""Counts comparisons of one pair of queries, from any number of threads, in bounded memory."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verify.dual_read.result import Comparison, PairResult, latency
from verify.dual_read.verdict import Outcome, Read, Verdict
from verify.verdict import Verdict as Answered

_SAMPLES_MAX = 5
_TIMES_MAX = 10_000
_CAUSES_MAX = 50
_SLOW_READS_MIN = 20
_SLOW_MS_MIN = 1.0


@dataclass(slots=True)
class _Times:
    """A fair sample of the times of one side (reservoir sampling: Vitter 1985, algorithm R)."""

    chance: random.Random
    seen: int = 0
    kept: list[float] = field(default_factory=list)

    def add(self, elapsed_s: float) -> None:
        self.seen += 1
        if len(self.kept) < _TIMES_MAX:
            self.kept.append(elapsed_s)
        elif (place := self.chance.randrange(self.seen)) < _TIMES_MAX:
            self.kept[place] = elapsed_s


class Tally:
    """The numbers of one pair of queries.

    Args:
        name: of the pair.
        old: the old query's text for the report.
        new: the new one's.
        slower_than: a warning is due when the new side's p95 is more than this many times the old one's.
        seed: of the sample of times.
    """

    def __init__(self, name: str, old: str = "", new: str = "", slower_than: float = 2.0, seed: int = 0):
        self.name = name
        self._texts = old, new
        self._slower_than = slower_than
        self._lock = threading.Lock()
        self._outcomes: Counter[Outcome] = Counter()
        self._accepted = self._dropped = 0
        self._causes: Counter[str] = Counter()
        self._old, self._new = _Times(random.Random(seed)), _Times(random.Random(seed + 1))
        self._samples: dict[Outcome, list[Comparison]] = {}

    def timed(self, side: str, elapsed_s: float) -> None:
        """Counts the time of a first read of ``old`` or ``new``."""
        with self._lock:
            (self._old if side == "old" else self._new).add(elapsed_s)

    def drop(self) -> None:
        """Counts a comparison that was not made, because the queue was full."""
        with self._lock:
            self._dropped += 1

    def wrong_so_far(self) -> int:
        """Returns how many comparisons ended as a bug or as a semantic difference that nobody accepted."""
        with self._lock:
            return self._outcomes[Outcome.BUG] + self._outcomes[Outcome.SEMANTIC] - self._accepted

    def take(self, found: Verdict, parameters: Mapping[str, Any], old: Read | None, new: Read | None) -> None:
        """Counts a comparison that has ended."""
        with self._lock:
            self._outcomes[found.outcome] += 1
            self._accepted += found.accepted
            if found.outcome is Outcome.MATCH:
                return
            for cause in _causes(found):
                if cause in self._causes or len(self._causes) < _CAUSES_MAX:
                    self._causes[cause] += 1
            samples = self._samples.setdefault(found.outcome, [])
            if len(samples) < _SAMPLES_MAX:
                samples.append(_sample(found, parameters, old, new))

    def result(self) -> PairResult:
        """The numbers so far."""
        with self._lock:
            count = self._outcomes
            semantic = count[Outcome.SEMANTIC] - self._accepted
            old, new = latency(self._old.kept, self._old.seen), latency(self._new.kept, self._new.seen)
            slow = min(old.reads, new.reads) >= _SLOW_READS_MIN and new.p95_ms > max(
                self._slower_than * old.p95_ms, _SLOW_MS_MIN
            )
            verdict, reason = self._verdict(semantic)
            return PairResult(
                name=self.name,
                old=self._texts[0],
                new=self._texts[1],
                verdict=verdict,
                reason=reason,
                compared=sum(count.values()),
                match=count[Outcome.MATCH],
                lag=count[Outcome.LAG],
                semantic=semantic,
                accepted=self._accepted,
                bug=count[Outcome.BUG],
                unknown=count[Outcome.UNKNOWN],
                dropped=self._dropped,
                causes=tuple(self._causes.most_common()),
                old_latency=old,
                new_latency=new,
                slower=(
                    f"the new side's p95 is {new.p95_ms / (old.p95_ms or new.p95_ms):.1f} times the old one's"
                    f" ({new.p95_ms:.1f} ms against {old.p95_ms:.1f} ms)"
                    if slow
                    else ""
                ),
                samples=tuple(comparison for kind in Outcome for comparison in self._samples.get(kind, ())),
            )

    def _verdict(self, semantic: int) -> tuple[Answered, str]:
        if self._outcomes[Outcome.BUG] or semantic:
            return Answered.DIFFERENT, ""
        if self._outcomes[Outcome.UNKNOWN]:
            return Answered.UNKNOWN, self._samples[Outcome.UNKNOWN][0].reason
        if not self._outcomes:
            return Answered.UNKNOWN, "nothing was compared"
        return Answered.EQUAL, ""


def _causes(found: Verdict) -> list[str]:
    """Returns the causes by which comparisons are grouped; a cause without a name gets its column, never values."""
    if found.difference is None:
        return [found.reason] if found.outcome is Outcome.BUG else []
    cells = {f"{cell.column}: {cell.cause}" for cell in found.difference.cells if not cell.name}
    return [*found.difference.names, *sorted(cells), *found.difference.rows]


def _sample(found: Verdict, parameters: Mapping[str, Any], old: Read | None, new: Read | None) -> Comparison:
    return Comparison(
        outcome=found.outcome,
        reason=found.reason,
        parameters=tuple((name, str(value)) for name, value in parameters.items()),
        cells=found.difference.cells if found.difference else (),
        source_low=old.low.state if old and old.low else "",
        source_high=old.high.state if old and old.high else "",
        target_at=new.high.state if new and new.high else "",
        old_ms=round(1000 * old.elapsed_s, 3) if old else 0.0,
        new_ms=round(1000 * new.elapsed_s, 3) if new else 0.0,
    )
