"""Timelines of witnesses: the events of one key around those that contradict each other.

Events of different places are put beside each other by log position: a commit of the target stands at its ledger's
position, a chunk row where the log had been read to when its segment ended, a fault beside the commit that
followed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from verify.history.evidence import Evidence
from verify.history.history import DELETE, PUT
from verify.history.names import Names
from verify.history.result import Moment
from verify.history.rows import Array, integers

_LONGEST = 20  # moments of a timeline
_OUTSIDE = 2  # of them before the first guilty event, and after the last one
_CLIENT, _LOG, _DELIVERED, _FAULT, _TARGET = range(5)  # the order at one position


@dataclass(frozen=True, slots=True)
class Mark:
    """A guilty event: ``log`` with a version, ``delivery`` with a delivery, or ``target`` with a step."""

    kind: str
    index: int


@dataclass(frozen=True, slots=True)
class _Event:
    position: int
    rank: int
    moment: Moment


class KeyTimeline:
    """The events of one key, those that are far from all guilty ones left out."""

    def __init__(self, evidence: Evidence, key: int, marks: Collection[Mark]):
        self._of, self._key, self._names = evidence, key, Names(evidence)
        self._marks = {
            kind: np.array(sorted(mark.index for mark in marks if mark.kind == kind), np.int64)
            for kind in ("log", "delivery", "target")
        }
        guilty = [
            evidence.log.position[self._marks["log"]],
            self._names.positions(self._delivered_at(self._marks["delivery"])),
            self._names.positions(evidence.steps.reached[self._marks["target"]]),
        ]
        self._spots = np.concatenate([*guilty, np.empty(0, np.int64)])

    def moments(self) -> tuple[Moment, ...]:
        """The timeline, in order."""
        events = [*self._log(), *self._clients(), *self._deliveries(), *self._target()]
        events.sort(key=lambda event: (event.position, event.rank))
        chosen = _around(events)
        chosen += self._faults(chosen)
        chosen.sort(key=lambda event: (event.position, event.rank))
        return tuple(event.moment for event in chosen)

    def _near(self, index: Array, positions: Array, marked: Array) -> list[tuple[int, int]]:
        """(index, position) of the marked events and of the nearest others, in order."""
        if len(index) > _LONGEST:
            spots = np.sort(self._spots) if len(self._spots) else np.zeros(1, np.int64)
            after = np.minimum(np.searchsorted(spots, positions), len(spots) - 1)
            distance = np.minimum(
                np.abs(spots[after] - positions), np.abs(positions - spots[np.maximum(after - 1, 0)])
            )
            distance[np.isin(index, marked)] = -1
            kept = np.sort(np.argsort(distance, kind="stable")[: _LONGEST + len(marked)])
            index, positions = index[kept], positions[kept]
        return list(zip(index.tolist(), positions.tolist(), strict=True))

    def _log(self) -> list[_Event]:
        log, marked = self._of.log, self._marks["log"]
        versions = np.union1d(log.of_key(self._key), marked)  # a guilty write may be of another key
        events = []
        for version, position in self._near(versions, log.position[versions], marked):
            key = int(log.rows.key[version])
            other = f"{self._of.keys.name(key)}: " if key != self._key else ""
            done = "put by" if log.rows.kind[version] == PUT else "deleted the row of"
            text = f"{other}{done} {self._names.row(log.rows, version)}"
            events.append(_Event(position, _LOG, Moment("log", position, text, version in marked)))
        return events

    def _clients(self) -> list[_Event]:
        rows, log = self._of.rows["operations"], self._of.log
        mine = np.flatnonzero(rows.key == self._key)
        events = []
        for kind, occurrences in ((PUT, log.puts), (DELETE, log.deletes)):
            index = mine[rows.kind[mine] == kind]
            some = rows.take(index)
            end = np.full(len(some), len(log.rows))
            versions = occurrences.newest(*occurrences.find(log.identities.of(some)), end)
            index, versions = index[versions >= 0], versions[versions >= 0]
            for operation, position in self._near(index, log.positions(versions), index[:0]):
                outcome = self._of.history.operations["outcome"][operation].as_py()
                text = f"{'put' if kind == PUT else 'delete'} by {self._names.writer(rows, operation)}: {outcome}"
                moment = Moment("client", int(rows.number[operation]), text)
                events.append(_Event(position, _CLIENT, moment))
        return events

    def _delivered_at(self, index: Array) -> Array:
        return self._of.log.prefix(self._of.deliveries.order[index])

    def _deliveries(self) -> list[_Event]:
        deliveries, marked = self._of.deliveries, self._marks["delivery"]
        index = np.union1d(np.flatnonzero(deliveries.rows.key == self._key), marked)
        events = []
        for delivery, position in self._near(index, self._names.positions(self._delivered_at(index)), marked):
            track = "log" if deliveries.from_log[delivery] else "chunk"
            what = self._names.version(int(deliveries.version[delivery]))
            text = f"delivered {what} in segment {deliveries.segment[delivery]}"
            events.append(_Event(position, _DELIVERED, Moment(track, delivery + 1, text, delivery in marked)))
        return events

    def _target(self) -> list[_Event]:
        target, steps, marked = self._of.target, self._of.steps, self._marks["target"]
        first = int(np.searchsorted(target.rows.key, self._key, "left"))
        last = int(np.searchsorted(target.rows.key, self._key, "right"))
        change = dict(zip(target.step[first:last].tolist(), range(first, last), strict=True))
        touched = np.union1d(target.step[first:last], marked)
        events = []
        for step, position in self._near(touched, self._names.positions(steps.reached[touched]), marked):
            what = self._names.holding(target.rows, change[step]) if step in change else "key not changed"
            rogue = "" if steps.commit[step] else "rogue write: "
            ledger = int(self._names.positions(steps.prefix[step : step + 1])[0])
            text = f"{rogue}{what}; the ledger says position {ledger}"
            moment = Moment("target", int(steps.commit[step]), text, step in marked)
            events.append(_Event(position, _TARGET, moment))
        return events

    def _faults(self, shown: list[_Event]) -> list[_Event]:
        """Faults that fired within the time shown."""
        table, commits, steps = self._of.history.faults, self._of.history.commits, self._of.steps
        if not table.num_rows or not commits.num_rows or not shown:
            return []
        clock = np.maximum.accumulate(integers(commits["committed_at_us"], 0))
        events = []
        for number, fault in enumerate(table.to_pylist(), 1):
            if fault["fired"] and fault["fired_us"] is not None:
                after = min(int(np.searchsorted(clock, fault["fired_us"], "left")), commits.num_rows - 1)
                step = int(np.flatnonzero((steps.recorded == after) & (steps.commit > 0))[0])
                position = int(self._names.positions(steps.reached[step : step + 1])[0])
                if shown[0].position <= position <= shown[-1].position:
                    place = f" at {fault['point']}" if fault["point"] else ""
                    moment = Moment("fault", number, f"{fault['name']}{place}")
                    events.append(_Event(position, _FAULT, moment))
        return events


def _around(events: list[_Event]) -> list[_Event]:
    """The guilty events, a few before and after, and of those between the ones that are nearest to a guilty one."""
    guilty = [index for index, event in enumerate(events) if event.moment.guilty]
    if not guilty:
        return events[-_LONGEST:]
    window = range(max(guilty[0] - _OUTSIDE, 0), min(guilty[-1] + _OUTSIDE + 1, len(events)))
    near = sorted(window, key=lambda index: (min(abs(index - guilt) for guilt in guilty), index))
    return [events[index] for index in sorted(near[: max(_LONGEST, len(guilty))])]
