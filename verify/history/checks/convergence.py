"""D7, convergence: after the writers stopped and the pipeline caught up, both sides hold the same rows,
and have at least one."""

from __future__ import annotations

import numpy as np

from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.result import CheckResult, WitnessCase
from verify.history.rows import Array, Rows, same_row
from verify.history.story import WITNESSES, Story
from verify.history.target import taken_or_absent

CHECK = Check("D7", "convergence", "rows of the final states")


def check(evidence: Evidence) -> CheckResult:
    """Judges D7."""
    description = evidence.history.description
    if description.halted:
        return CHECK.unknown(
            f"the pipeline halted ({description.halted}): its target is judged as a cut, by D6, not as the end"
        )
    if not description.drained:
        return CHECK.unknown("the pipeline was not drained, so it need not have caught up")
    source, target = evidence.rows["final_source"], evidence.rows["final_target"]
    doubled = [_doubled(source), _doubled(target)]
    keys = np.union1d(source.key, target.key)
    left = taken_or_absent(source, row_of(source, keys))
    right = taken_or_absent(target, row_of(target, keys))
    wrong = keys[~same_row(left, right)]
    return CHECK.verdict(
        len(keys) if len(source) else 0,
        len(wrong) + len(doubled[0]) + len(doubled[1]),
        [*_witnesses(evidence, wrong), *_twice(evidence, *doubled)][:WITNESSES],
        "the final source is empty",
    )


def row_of(rows: Rows, keys: Array) -> Array:
    """Index of each key's row, -1 without one; of several rows of a key, any. Keys may be in any order."""
    if not len(rows):
        return np.full(len(keys), -1, np.int64)
    order = np.argsort(rows.key, kind="stable")
    ordered = rows.key[order]
    place = np.minimum(np.searchsorted(ordered, keys), len(order) - 1)
    return np.where(ordered[place] == keys, order[place], -1)


def _doubled(rows: Rows) -> Array:
    ordered = np.sort(rows.key)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _witnesses(evidence: Evidence, wrong: Array) -> list[WitnessCase]:
    story = Story(evidence)
    cases = []
    for key in wrong[:WITNESSES].tolist():
        sides = []
        for rows in (evidence.rows["final_source"], evidence.rows["final_target"]):
            index = row_of(rows, np.array([key]))
            sides.append(story.holding(taken_or_absent(rows, index), 0))
        headline = f"{evidence.keys.name(key)}: in the end {sides[1]} in the target, {sides[0]} in the source"
        because = ("the writers had stopped and the pipeline had the time to catch up",)
        cases.append(story.case(headline, because, key, ()))
    return cases


def _twice(evidence: Evidence, in_source: Array, in_target: Array) -> list[WitnessCase]:
    return [
        WitnessCase(f"{evidence.keys.name(key)}: more than one row of this key in the {side}", (), ())
        for side, keys in (("source", in_source), ("target", in_target))
        for key in keys[:WITNESSES].tolist()
    ]
