"""D6, atomic consistent cut: ``Tj`` on Cov_j equals ``src@Pj`` on Cov_j at every commit, and P and epochs
never fall.

Both sides are kept as a rolling 128-bit sum of row hashes over the keys under judgement, moved by each change and
compared at every commit. It is a sum and not an exclusive or, because equal pairs would cancel in the latter. Where
the sums differ, the rows themselves are replayed to name the keys. ``observers`` compares the reads of external
observers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verify.history.checks.observers import judge_observers
from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.key_timeline import Mark
from verify.history.result import CheckResult, Moment, WitnessCase
from verify.history.rows import Array, same_row
from verify.history.story import WITNESSES, Story, pick

CHECK = Check("D6", "atomic consistent cut", "cuts")
_SEEDS = (0x243F6A8885A308D3, 0x13198A2E03707344)  # one per 64-bit half of the sum; digits of pi


def check(evidence: Evidence) -> CheckResult:
    """Judges D6."""
    compared = cuts(evidence)
    torn = np.flatnonzero(_torn(evidence) & compared)
    fallen = [*_falls(evidence, "order"), *_falls(evidence, "epoch")]
    observed = judge_observers(evidence)
    witnesses = [*_witnesses(evidence, torn), *fallen, *observed.witnesses]
    return CHECK.verdict(
        int(compared.sum()) + observed.compared,
        len(torn) + len(fallen) + observed.violations,
        witnesses[:WITNESSES],
        "no key was under judgement at any commit",
    )


def cuts(evidence: Evidence) -> Array:
    """Marks the states at which any key was under judgement."""
    spans = evidence.spans
    moved = np.zeros(len(evidence.steps) + 1, np.int64)
    np.add.at(moved, spans.start, 1)
    np.add.at(moved, spans.end, -1)
    return np.cumsum(moved[:-1]) > 0


def _torn(evidence: Evidence) -> Array:
    """States at which the two sums differ."""
    differs = np.zeros(len(evidence.steps), bool)
    for seed in _SEEDS:
        differs |= _target_sums(evidence, seed) != _source_sums(evidence, seed)
    return differs


def _target_sums(evidence: Evidence, seed: int) -> Array:
    target, spans = evidence.target, evidence.spans
    hashes = np.append(target.rows.hashes(seed), np.uint64(0))  # the last one: of no row
    moved = hashes[:-1] - hashes[target.before()]
    span = spans.at(target.rows.key, target.step)
    inside = (span >= 0) & (target.step > np.append(spans.start, 0)[span])
    return _rolled(
        evidence,
        target.step[inside],
        moved[inside],
        hashes[target.at(spans.key, spans.start)],
        hashes[target.at(spans.key, spans.end - 1)],
    )


def _source_sums(evidence: Evidence, seed: int) -> Array:
    log, steps, spans = evidence.log, evidence.steps, evidence.spans
    rows = log.rows.take(log.by_key)
    hashes = np.append(rows.hashes(seed), np.uint64(0))
    before = np.arange(len(rows)) - 1
    before[1:][rows.key[1:] != rows.key[:-1]] = -1
    moved = hashes[:-1] - hashes[before]
    step = steps.first_showing(log.by_key)
    shown = step < len(steps)
    key, step, moved = rows.key[shown], step[shown], moved[shown]
    span = spans.at(key, step)
    inside = (span >= 0) & (step > np.append(spans.start, 0)[span])
    begins, ends = (
        log.last_write(spans.key, steps.reached[at] if len(steps) else at)
        for at in (spans.start, spans.end - 1)
    )
    return _rolled(evidence, step[inside], moved[inside], hashes[begins], hashes[ends])


def _rolled(evidence: Evidence, step: Array, moved: Array, begins: Array, ends: Array) -> Array:
    """The sum at every state, modulo 2^64: changes within judgement, and keys that come under it or leave it."""
    spans = evidence.spans
    delta = np.zeros(len(evidence.steps) + 1, np.uint64)
    np.add.at(delta, step, moved)
    np.add.at(delta, spans.start, begins)
    np.subtract.at(delta, spans.end, ends)
    return np.cumsum(delta[:-1], dtype=np.uint64)


def _falls(evidence: Evidence, column: str) -> list[WitnessCase]:
    """Commits at which the ledger's order (its position) or epoch is lower than before."""
    steps = evidence.steps
    values = getattr(steps, column)
    cases = []
    for step in (np.flatnonzero(values[1:] < values[:-1]) + 1).tolist():
        moments = tuple(
            Moment(
                "target",
                int(steps.commit[state]),
                f"epoch {steps.epoch[state]}, order {steps.order[state]}, "
                f"position {Story(evidence).position(int(steps.prefix[state]))}",
                True,
            )
            for state in (step - 1, step)
        )
        headline = (
            f"{steps.name(step)}: {column} {values[step]} after {column} {values[step - 1]} "
            f"at {steps.name(step - 1)}"
        )
        cases.append(WitnessCase(headline, (f"the ledger's {column} must never fall",), moments))
    return cases


def differing(evidence: Evidence) -> Array:
    """Replays the rows, and returns the points whose two sides hold different ones."""
    points = evidence.points
    same = same_row(points.target_rows(evidence.target), points.source_rows(evidence.log))
    return np.flatnonzero(~same)


def _witnesses(evidence: Evidence, torn: Array) -> Sequence[WitnessCase]:
    if not len(torn):
        return []
    points, steps, story = evidence.points, evidence.steps, Story(evidence)
    wrong = differing(evidence)
    cases = []
    for point in pick(points.key, points.step, wrong):
        key, step = int(points.key[point]), int(points.step[point])
        one = np.array([point])
        here = story.holding(points.target_rows(evidence.target, one), 0)
        due = story.holding(points.source_rows(evidence.log, one), 0)
        others = int((points.step[wrong] == step).sum()) - 1
        also = f" (and {others} more keys)" if others else ""
        headline = (
            f"{steps.name(step)} is no cut: {evidence.keys.name(key)} is {here}, "
            f"at its position {story.position(int(steps.reached[step]))} the source has {due}{also}"
        )
        cases.append(story.at_point(headline, point, [Mark("target", step)]))
    return cases
