"""D5, exactly-once effect: a fold that a second application would change equals, in Tj, the fold of t1 ... tPj.

Tables described with ``fold`` hold a running sum of the clients' increments per key. The source's row carries the
fold of its log, so the target's value must be that of the source's last row within Pj, at every state.
"""

from __future__ import annotations

import numpy as np

from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.history import PUT
from verify.history.result import CheckResult, WitnessCase
from verify.history.rows import Array, Rows
from verify.history.story import Story, pick

CHECK = Check("D5", "exactly-once effect", "folds")


def check(evidence: Evidence) -> CheckResult:
    """Judges D5."""
    folds = {table.name for table in evidence.history.description.tables if table.fold}
    if not folds:
        return CHECK.unknown("no table of this history holds a fold")
    points = evidence.points
    compared = np.flatnonzero(evidence.of_tables(folds)[points.key])
    here = points.target_rows(evidence.target, compared)
    due = points.source_rows(evidence.log, compared)
    wrong = compared[_sums(here) != _sums(due)]
    wrong = np.union1d(wrong, compared[_without_sum(here) != _without_sum(due)])
    return CHECK.verdict(
        len(compared), len(wrong), _witnesses(evidence, wrong), "no fold was under judgement at any commit"
    )


def _sums(rows: Rows) -> Array:
    """Returns the sums that a fold has come to; 0 for a key without a row."""
    return np.where((rows.kind == PUT) & rows.known, rows.value, 0)


def _without_sum(rows: Rows) -> Array:
    return np.asarray((rows.kind == PUT) & ~rows.known)


def _witnesses(evidence: Evidence, wrong: Array) -> list[WitnessCase]:
    points, story = evidence.points, Story(evidence)
    cases = []
    for point in pick(points.key, points.step, wrong):
        one = np.array([point])
        here = points.target_rows(evidence.target, one)
        due = points.source_rows(evidence.log, one)
        step = int(points.step[point])
        headline = (
            f"{evidence.keys.name(int(points.key[point]))}: the fold is {_said(here)} at "
            f"{evidence.steps.name(step)}, the log's comes to {_said(due)} at its position "
            f"{story.position(int(evidence.steps.reached[step]))}"
        )
        cases.append(story.at_point(headline, point))
    return cases


def _said(rows: Rows) -> str:
    if rows.kind[0] != PUT:
        return "absent"
    return str(int(rows.value[0])) if rows.known[0] else "NULL"
