"""Reads of external observers, as a part of D6: their reads must be cuts too, and a reader never goes back.

A read is placed among the commits by the ledger's position in its own snapshot. Several commits may share a
position (a chunk moves no log), so a row must match one of the states with that position. A total is judged
from the first such state on that covers all of its tables: it must be the source's total at that position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from verify.history.evidence import Evidence
from verify.history.history import PUT
from verify.history.key_timeline import Mark
from verify.history.result import Moment, WitnessCase
from verify.history.rows import Array, Rows, integers, same_row
from verify.history.story import WITNESSES, Story
from verify.history.target import taken_or_absent
from verify.history.versions import BEFORE_ALL

_TOTAL = "total "


@dataclass(frozen=True, slots=True)
class Observed:
    """The result for the observers' reads: the number of reads compared, and those that were wrong."""

    compared: int
    violations: int
    witnesses: tuple[WitnessCase, ...]


def judge_observers(evidence: Evidence) -> Observed:
    """Compares all reads."""
    table = evidence.history.observations
    if not table.num_rows or not len(evidence.steps):
        return Observed(0, 0, ())
    order = integers(table["order"], BEFORE_ALL)
    low = np.searchsorted(_orders(evidence), order, "left")
    high = np.searchsorted(_orders(evidence), order, "right") - 1
    placed = low <= high  # else: before the first commit, or of a position that no commit has
    names = table["name"].to_numpy(zero_copy_only=False).astype(str)
    is_total = np.char.startswith(names, _TOTAL)
    reads, cases = 0, []
    for judged, wrong in (
        _back(evidence, order),
        _totals(evidence, names, np.flatnonzero(is_total & placed), low, high),
        _rows(evidence, np.flatnonzero(~is_total & placed), low, high),
    ):
        reads += judged
        cases.append(list(wrong))
    violations = sum(map(len, cases))
    shown = list(chain.from_iterable(cases))[:WITNESSES]
    return Observed(reads, violations, tuple(_witness(evidence, *case) for case in shown))


_Wrong = tuple[int, str, str]
"""Row of the observations, headline, and why."""


def _orders(evidence: Evidence) -> Array:
    return np.maximum.accumulate(evidence.steps.order)


def _back(evidence: Evidence, order: Array) -> tuple[int, Iterator[_Wrong]]:
    """Dual reads: an observer is never served an older position than before. Judged by the reads' own order."""
    table = evidence.history.observations
    observers = table["observer"].to_numpy(zero_copy_only=False).astype(str)
    _, who = np.unique(observers, return_inverse=True)
    by_observer = np.lexsort((integers(table["at_us"], 0), who))
    same = who[by_observer][1:] == who[by_observer][:-1]
    fell = by_observer[1:][same & (order[by_observer][1:] < order[by_observer][:-1])]

    def tell() -> Iterator[_Wrong]:
        for row in fell.tolist():
            mine = by_observer[who[by_observer] == who[row]]
            before = int(mine[np.flatnonzero(mine == row)[0] - 1])
            yield (
                row,
                f"observer {observers[row]}: order {order[row]} after order {order[before]}",
                f"read {row + 1} was served an older position than its read {before + 1}",
            )

    return 0, tell()


def _totals(
    evidence: Evidence, names: Array, reads: Array, low: Array, high: Array
) -> tuple[int, list[_Wrong]]:
    values = integers(evidence.history.observations["value"], 0)
    judged, wrong = 0, []
    for group in np.unique(names[reads]).tolist():
        of_group = reads[names[reads] == group]
        tables = [table for table in evidence.history.description.tables if _TOTAL + table.total == group]
        if not tables:
            continue
        covered = np.logical_and.reduce(
            [evidence.spans.done.get(table.name, np.zeros(len(evidence.steps), bool)) for table in tables]
        )
        of_group = of_group[covered[low[of_group]]]
        due = source_totals(evidence, {table.name for table in tables})
        expected = due[evidence.steps.prefix[low[of_group]]]
        judged += len(of_group)
        for row, amount in zip(of_group.tolist(), expected.tolist(), strict=True):
            if values[row] != amount:
                step = int(high[row])
                position = Story(evidence).position(int(evidence.steps.prefix[step]))
                why = f"the read belongs to {evidence.steps.name(step)}, by the ledger in its own snapshot"
                wrong.append(
                    (
                        row,
                        f"{group}: {values[row]} was observed at position {position}, the source has {amount}",
                        why,
                    )
                )
    return judged, wrong


def source_totals(evidence: Evidence, tables: set[str]) -> Array:
    """The sum of ``value`` over all rows of some tables after each prefix of the log; index: the prefix."""
    log = evidence.log
    rows = log.rows.take(log.by_key)
    value = np.where(rows.kind == PUT, rows.value, 0)
    before = np.append(0, value[:-1])
    first = np.ones(len(value), bool)
    first[1:] = rows.key[1:] != rows.key[:-1]
    moved = np.where(evidence.of_tables(tables)[rows.key], value - np.where(first, 0, before), 0)
    in_order = np.empty(len(value), np.int64)
    in_order[log.by_key] = moved
    return np.append(0, np.cumsum(in_order))


def _rows(evidence: Evidence, reads: Array, low: Array, high: Array) -> tuple[int, list[_Wrong]]:
    seen = evidence.rows["observations"].take(reads)
    from_step, to_step = low[reads], high[reads]
    judged = evidence.spans.at(seen.key, from_step) >= 0
    seen, from_step, to_step, reads = (
        seen.take(np.flatnonzero(judged)),
        from_step[judged],
        to_step[judged],
        reads[judged],
    )
    target = evidence.target
    first, last = target.at(seen.key, from_step), target.at(seen.key, to_step)
    matches = same_row(seen, taken_or_absent(target.rows, first)) | same_row(
        seen, taken_or_absent(target.rows, last)
    )
    wrong = []
    for index in np.flatnonzero(~matches).tolist():
        between = np.arange(max(int(first[index]), 0), int(last[index]) + 1)
        between = between[target.rows.key[between] == seen.key[index]]
        many = seen.take(np.full(len(between), index))
        if not same_row(many, target.rows.take(between)).any():
            wrong.append(_wrong_row(evidence, seen, index, int(reads[index]), int(to_step[index])))
    return len(reads), wrong


def _wrong_row(evidence: Evidence, seen: Rows, index: int, read: int, step: int) -> _Wrong:
    story, target = Story(evidence), evidence.target
    held = target.at(seen.key[index : index + 1], np.array([step]))
    holds = story.holding(taken_or_absent(target.rows, held), 0)
    name = evidence.keys.name(int(seen.key[index]))
    return (
        read,
        f"{name}: an observer saw {story.holding(seen, index)}, where {evidence.steps.name(step)} has {holds}",
        "the position is the ledger's in the observer's own snapshot",
    )


def _witness(evidence: Evidence, row: int, headline: str, why: str) -> WitnessCase:
    rows, story = evidence.rows["observations"], Story(evidence)
    read = evidence.history.observations.slice(row, 1).to_pylist()[0]
    moment = Moment(
        "observer", row + 1, f"{read['observer']} read {read['name']} at order {read['order']}", True
    )
    step = int(np.searchsorted(_orders(evidence), read["order"] or BEFORE_ALL, "right")) - 1
    if read["key"] is None:
        place = (
            Moment("target", int(evidence.steps.commit[step]), evidence.steps.name(step))
            if step >= 0
            else None
        )
        return WitnessCase(headline, (why,), tuple(event for event in (place, moment) if event))
    marks = {Mark("target", step)} if step >= 0 else set()
    case = story.case(headline, (why,), int(rows.key[row]), marks)
    return WitnessCase(case.headline, case.because, (*case.timeline, moment))
