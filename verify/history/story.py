"""Witnesses: how one key came to be what it was, told from the history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from verify.history.evidence import Evidence
from verify.history.history import PUT
from verify.history.result import Moment, WitnessCase
from verify.history.rows import MISSING, Array, Rows, integers
from verify.history.versions import UNHEARD_OF

WITNESSES = 3
"""How many a checker gives."""
_LONGEST = 24  # moments of a timeline
_NOT_DELIVERED = -3  # stands for a version that no delivery has


@dataclass(frozen=True, slots=True)
class Mark:
    """A guilty event: the lane and the index of the row there (log version, delivery, step, fault)."""

    lane: str
    index: int


@dataclass(frozen=True, slots=True)
class _Event:
    """A moment with the log position that it can be put beside."""

    position: float
    rank: int
    moment: Moment


def pick(evidence: Evidence, keys: Array, at: Array, guilty: Array) -> list[int]:
    """Indexes of the first few violations, earliest first, each of another key."""
    chosen: dict[int, int] = {}
    order = np.argsort(at[guilty], kind="stable")
    for index in guilty[order]:
        chosen.setdefault(int(keys[index]), int(index))
        if len(chosen) == WITNESSES:
            break
    return list(chosen.values())


class Story:
    """Tells witnesses of one history."""

    def __init__(self, evidence: Evidence):
        self._of = evidence

    # -- names --------------------------------------------------------------------------------------------------

    def version(self, version: int) -> str:
        """``version 11``: the position of the write; with its index where a transaction wrote the key twice."""
        if version == UNHEARD_OF:
            return "a row that nobody committed"
        if version < 0:
            return "no row"
        log = self._of.log
        position = int(log.position[version])
        kind = "version" if log.rows.kind[version] == PUT else "the delete of version"
        same = np.flatnonzero((log.position == position) & (log.rows.key == log.rows.key[version]))
        suffix = f".{int(np.searchsorted(same, version)) + 1}" if len(same) > 1 else ""
        return f"{kind} {position}{suffix}"

    def writer(self, rows: Rows, index: int) -> str:
        """``session 3 number 9``."""
        if rows.session[index] == MISSING:
            return "no provenance"
        if rows.session[index] == 0:
            return f"initial row {rows.number[index]}"
        return f"session {rows.session[index]} number {rows.number[index]}"

    def holding(self, rows: Rows, index: int) -> str:
        """A row in a few words."""
        if rows.kind[index] != PUT:
            return "no row"
        value = f", value {rows.value[index]}" if rows.known[index] else ""
        return self.writer(rows, index) + value

    def position(self, prefix: int) -> int:
        """The position that a prefix of the log ends with."""
        return int(self._of.log.position[prefix - 1]) if prefix > 0 else 0

    # -- cases --------------------------------------------------------------------------------------------------

    def at_point(self, headline: str, point: int, guilty: Iterable[Mark] = ()) -> WitnessCase:
        """A violation at a point: what the target shows there, what was due, and how both came about."""
        points, steps = self._of.points, self._of.steps
        key, step = int(points.key[point]), int(points.step[point])
        seen, due = int(points.seen[point]), int(points.due[point])
        marks = {Mark("target", step), *guilty}
        because = []
        if due >= 0:
            because.append(f"{self.version(due)} was committed by {self._author(due)}")
            marks.add(Mark("log", due))
        if due >= 0 and seen != due:
            because.append(self._fate(due, key))
        because += self._route(key, step, seen if points.here[point] else _NOT_DELIVERED, marks)
        position = self.position(int(steps.reached[step]))
        shows = self.version(seen) if points.here[point] else "no row"
        because.append(
            f"{steps.name(step)} says it holds position {position}, where the source had "
            f"{self._held(due)}; the target has {shows}"
        )
        return self.case(headline, because, key, marks)

    def case(self, headline: str, because: Sequence[str], key: int, guilty: Collection[Mark]) -> WitnessCase:
        """A witness with the timeline of one key around its guilty events."""
        marks = set(guilty)
        events = [*self._log(key, marks), *self._clients(key), *self._delivered(key, marks)]
        events += self._applied(key, marks)
        events.sort(key=lambda event: (event.position, event.rank))
        chosen = _around(events)
        chosen += self._faults(chosen)
        chosen.sort(key=lambda event: (event.position, event.rank))
        return WitnessCase(headline, tuple(because), tuple(event.moment for event in chosen))

    def _author(self, version: int) -> str:
        log = self._of.log
        return f"{self.writer(log.rows, version)} at log position {int(log.position[version])}"

    def _held(self, due: int) -> str:
        if due < 0 or self._of.log.rows.kind[due] != PUT:
            return "no row" if due < 0 else f"no row (deleted at position {int(self._of.log.position[due])})"
        return self.version(due)

    def _route(self, key: int, step: int, seen: int, marks: set[Mark]) -> list[str]:
        """Which delivery brought the version that the target shows, and what had been delivered before it."""
        target, deliveries, steps = self._of.target, self._of.deliveries, self._of.steps
        change = int(target.at(np.array([key]), np.array([step]))[0])
        if change < 0:
            return ["no commit had changed the key in the target"]
        written = int(target.step[change])
        lines = []
        applied = int(steps.segment[written])
        mine = np.flatnonzero((deliveries.rows.key == key) & (deliveries.segment <= applied))
        brought = mine[deliveries.version[mine] == seen] if seen != _NOT_DELIVERED else mine[:0]
        if len(brought):
            last = int(brought[-1])
            marks.add(Mark("delivery", last))
            earlier = mine[(mine < last) & (deliveries.version[mine] > deliveries.version[last])]
            if len(earlier):
                newest = int(earlier[np.argmax(deliveries.version[earlier])])
                marks.add(Mark("delivery", newest))
                lines.append(f"{self._delivery(newest)} had been delivered first")
            lines.append(f"{self._delivery(last)} brought what the target shows")
        elif steps.commit[written] and len(deliveries.rows):
            lines.append(f"no delivery up to segment {applied} explains it")
        marks.add(Mark("target", written))
        if written != step:
            lines.append(f"{steps.name(written)} wrote it, and no state since then has changed it")
        return lines

    def _fate(self, due: int, key: int) -> str:
        """Where the version that was due got to."""
        deliveries = self._of.deliveries
        got = np.flatnonzero((deliveries.rows.key == key) & (deliveries.version == due))
        return (
            f"{self._delivery(int(got[-1]))} came" if len(got) else f"{self.version(due)} was never delivered"
        )

    def _delivery(self, index: int) -> str:
        deliveries = self._of.deliveries
        what = self.version(int(deliveries.version[index]))
        by = "the log" if deliveries.from_log[index] else "a chunk"
        return f"{what} from {by} (delivery {index + 1}, segment {int(deliveries.segment[index])})"

    # -- lanes --------------------------------------------------------------------------------------------------

    def _log(self, key: int, marks: set[Mark]) -> list[_Event]:
        log = self._of.log
        events = []
        for version in np.flatnonzero(log.rows.key == key).tolist():
            done = "put by" if log.rows.kind[version] == PUT else "deleted the row of"
            text = f"{done} {self.holding_of(log.rows, version)}"
            position = int(log.position[version])
            events.append(_Event(position, 1, Moment("log", position, text, Mark("log", version) in marks)))
        return events

    def holding_of(self, rows: Rows, index: int) -> str:
        """The row that was put or deleted, in a few words."""
        value = f", value {rows.value[index]}" if rows.known[index] else ""
        return self.writer(rows, index) + value

    def _clients(self, key: int) -> list[_Event]:
        rows, log = self._of.rows["operations"], self._of.log
        mine = np.flatnonzero(rows.key == key)
        taken = rows.take(mine)
        events = []
        for kind, occurrences in ((PUT, log.puts), (-PUT, log.deletes)):
            of_kind = np.flatnonzero(taken.kind == kind)
            some = taken.take(of_kind)
            found = occurrences.newest(
                *occurrences.find(log.identities.of(some)), np.full(len(some), len(log.rows))
            )
            for index, version in zip(of_kind.tolist(), found.tolist(), strict=True):
                if version < 0:
                    continue
                outcome = self._of.history.operations["outcome"][int(mine[index])].as_py()
                text = f"{'put' if kind == PUT else 'delete'} by {self.writer(taken, index)}: {outcome}"
                events.append(
                    _Event(
                        int(log.position[version]), 0, Moment("client", int(taken.number[index]), text, False)
                    )
                )
        return events

    def _delivered(self, key: int, marks: set[Mark]) -> list[_Event]:
        deliveries, log = self._of.deliveries, self._of.log
        events = []
        for index in np.flatnonzero(deliveries.rows.key == key).tolist():
            prefix = int(log.prefix(deliveries.order[index : index + 1])[0])
            lane = "log" if deliveries.from_log[index] else "chunk"
            text = f"delivered {self.version(int(deliveries.version[index]))} in segment {deliveries.segment[index]}"
            moment = Moment(lane, index + 1, text, Mark("delivery", index) in marks)
            events.append(_Event(self.position(prefix), 2, moment))
        return events

    def _applied(self, key: int, marks: set[Mark]) -> list[_Event]:
        target, steps = self._of.target, self._of.steps
        first = np.searchsorted(target.rows.key, key, "left")
        last = np.searchsorted(target.rows.key, key, "right")
        shown = {int(target.step[index]): int(index) for index in range(first, last)}
        for mark in marks:
            if mark.lane == "target":
                shown.setdefault(mark.index, -1)
        events = []
        for step, index in sorted(shown.items()):
            position = self.position(int(steps.reached[step]))
            what = f"{self.holding(target.rows, index)}" if index >= 0 else "does not touch the key"
            rogue = "" if steps.commit[step] else "rogue write: "
            text = f"{rogue}{what}; the ledger says position {self.position(int(steps.prefix[step]))}"
            guilty = Mark("target", step) in marks
            events.append(_Event(position, 3, Moment("target", int(steps.commit[step]), text, guilty)))
        return events

    def _faults(self, shown: Sequence[_Event]) -> list[_Event]:
        """Faults that fired, beside the first commit after each."""
        table, commits = self._of.history.faults, self._of.history.commits
        if not table.num_rows or not commits.num_rows or not shown:
            return []
        clock = np.maximum.accumulate(integers(commits["committed_at_us"], 0))
        low, high = shown[0].position, shown[-1].position
        events = []
        for number, fault in enumerate(table.to_pylist(), 1):
            if not fault["fired"] or fault["fired_us"] is None:
                continue
            after = int(np.searchsorted(clock, fault["fired_us"], "left"))
            step = int(np.searchsorted(self._of.steps.recorded, min(after, commits.num_rows - 1), "left"))
            position = self.position(int(self._of.steps.reached[step]))
            if low <= position <= high:
                place = f" at {fault['point']}" if fault["point"] else ""
                events.append(_Event(position, 2, Moment("fault", number, f"{fault['name']}{place}")))
        return events


def _around(events: list[_Event]) -> list[_Event]:
    """The guilty events and what happened between and just around them, at most ``_LONGEST`` moments."""
    guilty = [index for index, event in enumerate(events) if event.moment.guilty]
    if len(events) <= _LONGEST or not guilty:
        return events[:_LONGEST]
    chosen = set(guilty)
    near = sorted(range(len(events)), key=lambda index: (min(abs(index - guilt) for guilt in guilty), index))
    for index in near:
        if len(chosen) >= _LONGEST:
            break
        chosen.add(index)
    return [events[index] for index in sorted(chosen)]
