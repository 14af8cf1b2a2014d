"""D1, no time travel: per key, versions over delivery order, and ``ver(Tj(k))`` over j, never decrease.

Deliveries are compared by log position, so the order within a transaction is free. A segment keeps a chunk's rows
apart from the log's, and the target merges it as one; so a chunk row may stand anywhere among the rows that the log
delivered in its own segment, and counts only against other segments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.key_timeline import Mark
from verify.history.result import CheckResult, WitnessCase
from verify.history.rows import Array
from verify.history.story import WITNESSES, Story, pick

CHECK = Check("D1", "no time travel", "row versions")


def check(evidence: Evidence) -> CheckResult:
    """Judges D1."""
    over_deliveries, delivered = _deliveries(evidence)
    over_commits, shown = _states(evidence)
    witnesses = _of_states(evidence, over_commits) + _of_deliveries(evidence, over_deliveries)
    return CHECK.verdict(
        delivered + shown,
        len(over_deliveries.late) + len(over_commits),
        witnesses[:WITNESSES],
        "no version was delivered, and no key was under judgement at any commit",
    )


@dataclass(frozen=True, slots=True)
class _Late:
    """Deliveries that came after a newer version of their key: the late one, and the newer one."""

    late: Array
    newer: Array


def _deliveries(evidence: Evidence) -> tuple[_Late, int]:
    deliveries = evidence.deliveries
    known = np.flatnonzero(deliveries.version >= 0)
    order = known[np.argsort(deliveries.rows.key[known], kind="stable")]
    if not len(order):
        return _Late(order, order), 0
    key = deliveries.rows.key[order].astype(np.int64)
    position = evidence.log.positions(deliveries.version[order])
    height = key * (int(evidence.log.position[-1]) + 1) + position  # falls within a key only
    from_log = np.flatnonzero(deliveries.from_log[order])
    fallen = from_log[1:][height[from_log[1:]] < np.maximum.accumulate(height[from_log])[:-1]]
    # Chunk rows and log rows of one key and segment are one group; each against all groups before.
    new_group = np.ones(len(order), bool)
    segment = deliveries.segment[order]
    new_group[1:] = (key[1:] != key[:-1]) | (segment[1:] != segment[:-1])
    begins = np.flatnonzero(new_group)
    highest = np.maximum.accumulate(np.maximum.reduceat(height, begins))
    group = np.cumsum(new_group) - 1
    before = np.append(-1, highest)[group]
    late = np.union1d(fallen, np.flatnonzero(height < before))
    newer = np.array([_newer(height, key, int(index)) for index in late[:64]], np.int64)
    return _Late(order[late], order[newer]), len(order)


def _newer(height: Array, key: Array, late: int) -> int:
    """The newest delivery of the key before the late one."""
    first = int(np.searchsorted(key, key[late], "left"))
    return first + int(np.argmax(height[first:late]))


def _states(evidence: Evidence) -> tuple[Array, int]:
    points = evidence.points
    if not len(points):
        return np.empty(0, np.int64), 0
    known = np.flatnonzero(points.seen >= -1)
    fell = (points.seen[known][1:] < points.seen[known][:-1]) & (
        points.span[known][1:] == points.span[known][:-1]
    )
    return known[1:][fell], len(known)


def _of_states(evidence: Evidence, fallen: Array) -> list[WitnessCase]:
    points, steps, story = evidence.points, evidence.steps, Story(evidence)
    cases = []
    for point in pick(points.key, points.step, fallen):
        before = point - 1
        while points.seen[before] < -1:
            before -= 1
        shows, showed = _shown(story, evidence, point), _shown(story, evidence, before)
        headline = (
            f"{evidence.keys.name(int(points.key[point]))}: {shows} at {steps.name(int(points.step[point]))} "
            f"after {showed} at {steps.name(int(points.step[before]))}"
        )
        cases.append(story.at_point(headline, point, [Mark("target", int(points.step[before]))]))
    return cases


def _shown(story: Story, evidence: Evidence, point: int) -> str:
    version = story.version(int(evidence.points.seen[point]))
    return (
        version if evidence.points.here[point] else f"no row ({version})" if version != "no row" else version
    )


def _of_deliveries(evidence: Evidence, found: _Late) -> list[WitnessCase]:
    deliveries, story = evidence.deliveries, Story(evidence)
    cases = []
    for late, newer in list(zip(found.late.tolist(), found.newer.tolist(), strict=False))[:WITNESSES]:
        key = int(deliveries.rows.key[late])
        old, new = (story.version(int(deliveries.version[delivery])) for delivery in (late, newer))
        headline = (
            f"{evidence.keys.name(key)}: {old} delivered by {_origin(evidence, late)} in segment "
            f"{deliveries.segment[late]} after {new} in segment {deliveries.segment[newer]}"
        )
        because = (
            f"{_origin(evidence, newer)} delivered {new} (delivery {newer + 1})",
            f"{_origin(evidence, late)} delivered {old} later (delivery {late + 1})",
        )
        cases.append(story.case(headline, because, key, {Mark("delivery", late), Mark("delivery", newer)}))
    return cases


def _origin(evidence: Evidence, delivery: int) -> str:
    return "the log" if evidence.deliveries.from_log[delivery] else "a chunk"
