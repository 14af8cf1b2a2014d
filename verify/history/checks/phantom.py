"""D4, no phantom, no resurrection: each visible value has a committed writer at or before Pj; a key deleted at
``d <= max Pi`` (i <= j) and not inserted again in ``(d, Pj]`` is absent.

Rows that capture delivered must have a committed writer too. An operation that its client saw fail, and whose write
is in the log, contradicts what this check assumes of the clients: then the outcome is unknown.
"""

from __future__ import annotations

import numpy as np

from verify.history.checks.lost_update import logged, outcomes
from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.history import DELETE, FAILED, OK, PUT, UNKNOWN
from verify.history.key_timeline import Mark
from verify.history.result import CheckResult, WitnessCase
from verify.history.rows import Array
from verify.history.story import WITNESSES, Story, pick
from verify.history.versions import UNHEARD_OF

CHECK = Check("D4", "no phantom, no resurrection", "visible and delivered rows")


def check(evidence: Evidence) -> CheckResult:
    """Judges D4."""
    points, steps = evidence.points, evidence.steps
    reached = steps.reached[points.step] if len(points) else points.step
    unheard = points.here & (points.seen == UNHEARD_OF)
    future = points.here & (points.seen >= reached)
    dead = _is_delete(evidence, points.due)
    risen = points.here & dead & ~unheard & ~future
    wrong = np.flatnonzero(unheard | future | risen)
    phantoms = np.flatnonzero(evidence.deliveries.version == UNHEARD_OF)
    checked = len(evidence.deliveries.version) + int((points.here | dead).sum())
    witnesses = _states(evidence, wrong, risen) + _deliveries(evidence, phantoms)
    impossible = _failed_but_logged(evidence)
    if impossible and not len(wrong) and not len(phantoms):
        return CHECK.unknown(impossible, checked)
    return CHECK.verdict(
        checked,
        len(wrong) + len(phantoms),
        witnesses[:WITNESSES],
        "no row was delivered, and none was visible under judgement at any commit",
    )


def _is_delete(evidence: Evidence, versions: Array) -> Array:
    kind = np.append(evidence.log.rows.kind, 0)  # the last one: of no version
    return np.asarray(kind[np.maximum(versions, -1)] == DELETE)


def _failed_but_logged(evidence: Evidence) -> str:
    rows = evidence.rows["operations"]
    # A delete names the row it removes, which another client may have removed: only puts are a client's own.
    puts = rows.kind == PUT
    failed = np.flatnonzero(outcomes(evidence, FAILED) & puts)
    if not len(failed):
        return ""
    found = failed[logged(evidence, failed)]
    others = rows.take(np.flatnonzero(outcomes(evidence, OK, UNKNOWN) & puts))
    tried_again = np.isin(evidence.log.identities.of(rows.take(found)), evidence.log.identities.of(others))
    found = found[~tried_again]
    if not len(found):
        return ""
    first = int(found[0])
    return (
        f"{len(found)} operation(s) that their clients saw fail are in the source log, "
        f"e.g. the put of {evidence.keys.name(int(rows.key[first]))} by {Story(evidence).writer(rows, first)}"
    )


def _states(evidence: Evidence, wrong: Array, risen: Array) -> list[WitnessCase]:
    points, steps, story = evidence.points, evidence.steps, Story(evidence)
    cases = []
    for point in pick(points.key, points.step, wrong):
        seen, step, key = int(points.seen[point]), int(points.step[point]), int(points.key[point])
        position = story.position(int(steps.reached[step]))
        rows = points.target_rows(evidence.target, np.array([point]))
        where = f"{evidence.keys.name(key)}: {story.holding(rows, 0)}"
        if seen == UNHEARD_OF:
            headline = f"{where} at {steps.name(step)}, which nobody committed"
        elif risen[point]:
            deleted = int(evidence.log.position[points.due[point]])
            headline = f"{where} at {steps.name(step)}, although deleted at position {deleted}"
        else:
            written = int(evidence.log.position[seen])
            headline = f"{where} at {steps.name(step)} (position {position}), committed only at {written}"
        cases.append(story.at_point(headline, point))
    return cases


def _deliveries(evidence: Evidence, phantoms: Array) -> list[WitnessCase]:
    deliveries, story = evidence.deliveries, Story(evidence)
    cases = []
    for index in phantoms[:WITNESSES].tolist():
        key = int(deliveries.rows.key[index])
        origin = "the log" if deliveries.from_log[index] else "a chunk"
        kind = "row" if deliveries.rows.kind[index] == PUT else "delete"
        headline = (
            f"{evidence.keys.name(key)}: {origin} delivered a {kind} of {story.writer(deliveries.rows, index)} "
            f"in segment {deliveries.segment[index]}, which nobody committed"
        )
        cases.append(story.case(headline, (), key, {Mark("delivery", index)}))
    return cases
