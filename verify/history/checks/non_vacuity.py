"""D8, non-vacuity: the run exercised all that it is judged for, and its record is whole; any zero is *unknown*.

The check counts deliveries, acknowledged operations, compared cuts, planned faults that fired, and races: keys that
the log touched before the dump passed them, so that their chunk rows were dropped or read after the touch. The log
and the changes of a drained run must lead to the final states that plain SQL has read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify.history.checks.atomic_cut import cuts
from verify.history.checks.convergence import row_of
from verify.history.checks.lost_update import outcomes
from verify.history.checks.verdict import Check
from verify.history.evidence import Evidence
from verify.history.history import OK, TrackedTable
from verify.history.result import CheckResult
from verify.history.rows import Array, Rows, same_row
from verify.history.target import taken_or_absent

CHECK = Check("D8", "non-vacuity", "events, races, cuts and acknowledged writes")


def check(evidence: Evidence) -> CheckResult:
    """Judges D8."""
    counts = tally(evidence)
    reasons = [f"no {name}" for name, count in counts.items() if not count]
    reasons += _unfired(evidence)
    reasons += _gaps(evidence)
    checked = sum(counts.values())
    if reasons:
        return CHECK.unknown("; ".join(reasons), checked)
    return CHECK.verdict(checked, 0, (), "")


def tally(evidence: Evidence) -> dict[str, int]:
    """Counts the exercises of the run, by the names that a report shows."""
    from_log = evidence.deliveries.from_log
    return {
        "change event was delivered": int(from_log.sum()),
        "chunk row was delivered": int((~from_log).sum()),
        "key was touched by the log before the dump passed it": races(evidence),
        "cut was compared": int(cuts(evidence).sum()),
        "operation was acknowledged": int(outcomes(evidence, OK).sum()),
    }


def races(evidence: Evidence) -> int:
    """Keys with a change event no later than the segment with which the dump passed them."""
    described = {table.name: table for table in evidence.history.description.tables}
    deliveries, keys = evidence.deliveries, evidence.keys
    never = np.iinfo(np.int64).max
    touched = np.full(len(keys), never, np.int64)
    np.minimum.at(touched, deliveries.rows.key[deliveries.from_log], deliveries.segment[deliveries.from_log])
    found = 0
    for code, name in enumerate(keys.tables):
        chunk = np.flatnonzero(~deliveries.from_log & (keys.table[deliveries.rows.key] == code))
        if len(chunk):
            table = described.get(name, TrackedTable(name, numeric_key=False))
            of_table = keys.of_table(name)
            passed = _passed(evidence, table, of_table, deliveries.rows.key[chunk], deliveries.segment[chunk])
            found += int(((touched[of_table] < never) & (touched[of_table] <= passed)).sum())
    return found


def _passed(evidence: Evidence, table: TrackedTable, of_table: Array, dumped: Array, segment: Array) -> Array:
    """Per key of a table the first segment whose chunks reach it, else the dump's last one."""
    last = np.full(len(of_table), segment.max())
    if not table.numeric_key:
        return last
    integer = evidence.keys.integers(of_table)
    reached = np.maximum.accumulate(integer[np.searchsorted(of_table, dumped)])
    place = np.searchsorted(reached, integer, "left")
    inside = place < len(reached)
    last[inside] = segment[place[inside]]
    return last


def _unfired(evidence: Evidence) -> Iterator[str]:
    for fault in evidence.history.faults.to_pylist():
        if not fault["fired"]:
            place = f" at {fault['point']}" if fault["point"] else ""
            yield f"the planned fault {fault['name']}{place} did not fire"


def _gaps(evidence: Evidence) -> Iterator[str]:
    """Yields where the record does not lead to the final states, so that something happened unrecorded."""
    history, rows = evidence.history, evidence.rows
    if not history.description.drained or history.description.halted:
        return
    keys = np.arange(len(evidence.keys))
    log, target = evidence.log, evidence.target
    source_end = log.version_of(log.last_write(keys, np.full(len(keys), len(log.rows))))
    target_end = target.at(keys, np.full(len(keys), len(evidence.steps)))
    for name, final, recorded, end in (
        ("log does not lead to the final source", rows["final_source"], log.rows, source_end),
        ("changes do not lead to the final target", rows["final_target"], target.rows, target_end),
    ):
        wrong = _unlike(final, recorded, end, keys)
        if len(wrong):
            yield f"the recorded {name}, e.g. {evidence.keys.name(int(wrong[0]))} ({len(wrong)} keys)"


def _unlike(final: Rows, recorded: Rows, end: Array, keys: Array) -> Array:
    there = taken_or_absent(final, row_of(final, keys))
    return np.flatnonzero(~same_row(there, taken_or_absent(recorded, end)))
