"""D3, no lost update: for all j and k in Cov_j, ``ver(Tj(k)) >= ver(src@Pj(k))``; every acknowledged
operation stands in the log; and after the drain the position is the log's end.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.history import OK, PUT
from verify.history.result import CheckResult, Moment, WitnessCase
from verify.history.rows import Array
from verify.history.story import WITNESSES, Story, pick

CHECK = Check("D3", "no lost update", "row versions and acknowledged writes")


def check(evidence: Evidence) -> CheckResult:
    """Judges D3."""
    points = evidence.points
    known = points.seen >= -1  # a row that nobody committed has no version; D4 judges it
    lost = np.flatnonzero(known & (points.seen < points.due))
    missing, acknowledged = _unlogged(evidence)
    unread = _unread(evidence)
    witnesses = [*_states(evidence, lost), *_operations(evidence, missing), *unread]
    compared = int(known.sum())
    return CHECK.verdict(
        compared + acknowledged if compared else 0,
        len(lost) + len(missing) + len(unread),
        witnesses[:WITNESSES],
        "no key was under judgement at any commit",
    )


def outcomes(evidence: Evidence, *wanted: str) -> Array:
    """Marks the operations that ended in one of the wanted ways, as a mask over all operations."""
    found = pc.is_in(evidence.history.operations["outcome"], value_set=pa.array(wanted, pa.string()))
    return np.asarray(found.combine_chunks().to_numpy(zero_copy_only=False))


def logged(evidence: Evidence, operations: Array) -> Array:
    """Marks which of these operations (indexes) stand in the log."""
    rows, log = evidence.rows["operations"].take(operations), evidence.log
    codes = log.identities.of(rows)
    is_put = rows.kind == PUT
    held = np.empty(len(operations), bool)
    held[is_put] = log.puts.contains(codes[is_put])
    held[~is_put] = log.deletes.contains(codes[~is_put])
    return held


def _unlogged(evidence: Evidence) -> tuple[Array, int]:
    acknowledged = np.flatnonzero(outcomes(evidence, OK))
    return acknowledged[~logged(evidence, acknowledged)], len(acknowledged)


def _unread(evidence: Evidence) -> list[WitnessCase]:
    """Reports a log that wasn't read to its end, although the pipeline had drained."""
    steps, log = evidence.steps, evidence.log
    if not evidence.history.description.drained or not len(steps) or steps.reached[-1] >= len(log.rows):
        return []
    reached, end = Story(evidence).position(int(steps.reached[-1])), int(log.position[-1])
    last = int(steps.commit[steps.commit > 0][-1]) if (steps.commit > 0).any() else 0
    return [
        WitnessCase(
            f"the last commit is at position {reached}, the log ends at {end}",
            ("the writers had stopped and the pipeline had the time to catch up",),
            (Moment("log", end, "the log's end", True), Moment("target", last, "the last commit", True)),
        )
    ]


def _states(evidence: Evidence, lost: Array) -> list[WitnessCase]:
    points, story = evidence.points, Story(evidence)
    cases = []
    for point in pick(points.key, points.step, lost):
        seen = story.version(int(points.seen[point])) if points.here[point] else "no row"
        step = int(points.step[point])
        headline = (
            f"{evidence.keys.name(int(points.key[point]))}: {seen} at {evidence.steps.name(step)}, whose position "
            f"{story.position(int(evidence.steps.reached[step]))} includes {story.version(int(points.due[point]))}"
        )
        cases.append(story.at_point(headline, point))
    return cases


def _operations(evidence: Evidence, missing: Array) -> list[WitnessCase]:
    rows, story = evidence.rows["operations"], Story(evidence)
    cases = []
    for index in missing[:WITNESSES].tolist():
        key, kind = int(rows.key[index]), "put" if rows.kind[index] == PUT else "delete"
        what = f"{kind} by {story.writer(rows, index)}"
        headline = f"{evidence.keys.name(key)}: the acknowledged {what} is not in the source log"
        case = story.case(headline, ("the client saw its transaction commit",), key, ())
        guilty = Moment("client", int(rows.number[index]), f"{what}: ok", True)
        cases.append(WitnessCase(case.headline, case.because, (*case.timeline, guilty)))
    return cases
