"""D2, monotonic writes: w before w' in a session; if w' or a successor shows in Tj, then ``ver(Tj(k_w)) >= w``.

A session's order is that of its commits in the log. Every write has the first state in which it, or a newer version
of its key, shows; so the definition asks that no write shows before an earlier one of its session whose key
is under judgement. (A version that showed and was taken back is D1's.)
"""

from __future__ import annotations

import numpy as np

from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.history import PUT
from verify.history.key_timeline import Mark
from verify.history.result import CheckResult, WitnessCase
from verify.history.rows import Array
from verify.history.story import WITNESSES, Story

CHECK = Check("D2", "monotonic writes", "writes of sessions")


def check(evidence: Evidence) -> CheckResult:
    """Judges D2."""
    rows = evidence.log.rows
    writes = np.flatnonzero((rows.kind == PUT) & (rows.session > 0))
    writes = writes[np.argsort(rows.session[writes], kind="stable")]
    shows = first_states(evidence)[writes]
    judged_from, judged_until = (
        (evidence.spans.first[rows.key[writes]], evidence.spans.until[rows.key[writes]])
        if len(evidence.keys)
        else (shows, shows)
    )
    later = _earliest_later(rows.session[writes], shows, len(evidence.steps))
    due = np.maximum(later, judged_from)
    compared = due < judged_until  # behind it the dump of the key's table has begun anew
    late = np.flatnonzero(compared & (shows > due))
    return CHECK.verdict(
        int(compared.sum()),
        len(late),
        _witnesses(evidence, writes, shows, due, late),
        "no session wrote twice so that the later write showed while the key of the earlier one was under judgement",
    )


def first_states(evidence: Evidence) -> Array:
    """Per write of the log the first state under judgement that shows it or a successor; the number of states if
    none does."""
    log, points = evidence.log, evidence.points
    never = len(evidence.steps)
    first = np.full(len(log.rows), never, np.int64)
    if not len(points):
        return first
    size = len(log.rows) + 3
    code = points.key.astype(np.int64) * size + points.seen + 2
    highest = np.maximum.accumulate(code)  # within a key: a higher key is higher anyway
    key = log.rows.key[log.by_key].astype(np.int64)
    place = np.searchsorted(highest, key * size + log.by_key + 2, "left")
    found = place < len(points)
    found[found] = points.key[place[found]] == key[found]
    first[log.by_key[found]] = points.step[place[found]]
    return first


def _earliest_later(session: Array, shows: Array, never: int) -> Array:
    """Per write the first state that shows any later write of its session."""
    if not len(session):
        return shows
    # From the end, a running minimum that begins anew with every session: sessions are shifted below each other.
    rank = np.cumsum(np.append(False, session[1:] != session[:-1]))
    running = np.minimum.accumulate((shows + rank * (never + 1))[::-1])[::-1]
    later = np.append(running[1:], never) - np.append(rank[1:], rank[-1]) * (never + 1)
    last = np.append(session[1:] != session[:-1], True)
    return np.where(last, never, later)


def _witnesses(evidence: Evidence, writes: Array, shows: Array, due: Array, late: Array) -> list[WitnessCase]:
    log, steps, story = evidence.log, evidence.steps, Story(evidence)
    cases = []
    chosen = late[np.argsort(due[late], kind="stable")][:WITNESSES]
    for index in chosen.tolist():
        mine, step = int(writes[index]), int(due[index])
        session = int(log.rows.session[mine])
        after = np.flatnonzero((log.rows.session[writes] == session) & (writes > mine) & (shows <= step))
        other = int(writes[after[0]])
        key, other_key = int(log.rows.key[mine]), int(log.rows.key[other])
        names = evidence.keys.name(key), evidence.keys.name(other_key)
        headline = (
            f"session {session}: {steps.name(step)} shows its number {log.rows.number[other]} ({names[1]}) "
            f"without its earlier number {log.rows.number[mine]} ({names[0]})"
        )
        never = int(shows[index]) >= len(steps)
        because = (
            f"session {session} committed number {log.rows.number[mine]} at position {log.position[mine]}, "
            f"then number {log.rows.number[other]} at position {log.position[other]}",
            f"{names[1]} shows the later one, or a successor, since {steps.name(int(shows[after[0]]))}",
            f"{names[0]} is under judgement since {steps.name(int(evidence.spans.first[key]))} and shows the "
            + ("earlier one never" if never else f"earlier one only from {steps.name(int(shows[index]))} on"),
        )
        cases.append(
            story.case(headline, because, key, {Mark("log", mine), Mark("log", other), Mark("target", step)})
        )
    return cases
