"""The findings of a dual read, as frozen values. ``FORMAT`` numbers the JSON form (``verify.dual_read.report``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from verify.dual_read.difference import CellDifference
from verify.dual_read.verdict import Outcome
from verify.verdict import Verdict

FORMAT = 1

CANNOT_DETECT = (
    "Anything that none of these queries, with the parameters that they were run with, looks at. `migrator verify`"
    " compares every row.",
    "Rows left out by a LIMIT whose ORDER BY leaves ties: each side may choose others, which looks like a wrong row.",
    "Two wrongs in one: a new query that is wrong in the same way as the target's rows are.",
    "A value that goes back and forth, met in one state at every old read of a comparison and in the other at every"
    " new read, is taken for a bug (less than one in a million comparisons of a value that toggles at random).",
    "Latency under other load, on other machines, with other caches than these.",
)


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of one side's first reads, in milliseconds. All are zero where there were no reads."""

    reads: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


def latency(elapsed_s: Sequence[float], reads: int) -> Latency:
    """Percentiles by nearest rank of a sample out of ``reads``."""
    ordered = sorted(elapsed_s)

    def rank(share: float) -> float:
        return round(1000 * ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3) if ordered else 0.0

    return Latency(reads, rank(0.5), rank(0.95), rank(0.99))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison that is shown.

    Attributes:
        outcome: ``match``, ``lag``, ``semantic``, ``bug`` or ``unknown``.
        reason: how that was found.
        parameters: names and values.
        cells: the first cells that differ.
        source_low: the source's log when the old side was read first: what was surely in the answer.
        source_high: the same: what was at most in it.
        target_at: the ledger's position when the new side was read first.
        old_ms: time of the old query.
        new_ms: time of the new one.
    """

    outcome: Outcome
    reason: str
    parameters: tuple[tuple[str, str], ...]
    cells: tuple[CellDifference, ...]
    source_low: str
    source_high: str
    target_at: str
    old_ms: float
    new_ms: float


@dataclass(frozen=True, slots=True)
class PairResult:
    """One pair of queries.

    Attributes:
        name: of the pair.
        old: the old query's text, or empty for callables.
        new: the new one's.
        verdict: equal, different or unknown.
        reason: why it is unknown, or empty.
        compared: comparisons made.
        match: equal at once.
        lag: equal once the target had passed the old read.
        semantic: differ for named causes only that nobody accepted.
        accepted: differ for named causes only, all accepted.
        bug: wrong.
        unknown: neither proved nor disproved.
        dropped: not compared, because the queue was full.
        causes: named causes and summaries of bugs with the number of comparisons, most frequent first.
        old_latency: of the old side.
        new_latency: of the new side.
        slower: a warning, or empty.
        samples: some comparisons of each kind that is no match.
    """

    name: str
    old: str
    new: str
    verdict: Verdict
    reason: str
    compared: int
    match: int
    lag: int
    semantic: int
    accepted: int
    bug: int
    unknown: int
    dropped: int
    causes: tuple[tuple[str, int], ...]
    old_latency: Latency
    new_latency: Latency
    slower: str
    samples: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class DualReadResult:
    """The whole answer. ``notes`` says what was left out, e.g. statements of a log that no pair describes."""

    migration: str
    verdict: Verdict
    started_at: str
    elapsed_s: float
    source: str
    target: str
    seed: int
    pairs: tuple[PairResult, ...]
    notes: tuple[str, ...]
    remedy: str
    cannot_detect: tuple[str, ...] = CANNOT_DETECT
