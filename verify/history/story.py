"""Witnesses: how one key got its row, told from the history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from verify.history.history import PUT
from verify.history.key_timeline import KeyTimeline, Mark
from verify.history.names import Names
from verify.history.result import WitnessCase
from verify.history.rows import Array

WITNESSES = 3
"""The number of witnesses that a checker gives."""


def pick(keys: Array, at: Array, guilty: Array) -> list[int]:
    """Indexes of the first few violations, earliest first, each of another key."""
    chosen: dict[int, int] = {}
    order = np.argsort(at[guilty], kind="stable")
    for index in guilty[order]:
        chosen.setdefault(int(keys[index]), int(index))
        if len(chosen) == WITNESSES:
            break
    return list(chosen.values())


class Story(Names):
    """Tells witnesses of one history."""

    def at_point(self, headline: str, point: int, guilty: Iterable[Mark] = ()) -> WitnessCase:
        """A violation at a point: the version that the target shows, the one that was due, and the way of both."""
        points, steps, log = self._of.points, self._of.steps, self._of.log
        key, step, due = int(points.key[point]), int(points.step[point]), int(points.due[point])
        here, seen = bool(points.here[point]), int(points.seen[point])
        marks = {Mark("target", step), *guilty}
        because = []
        held = "no row"
        if due >= 0:
            marks.add(Mark("log", due))
            at = f"log position {int(log.position[due])}"
            because.append(f"{self.version(due)} was committed by {self.writer(log.rows, due)} at {at}")
            held += f" (deleted at position {int(log.position[due])})"
            if log.rows.kind[due] == PUT:
                held = self.version(due)
        because += self._route(key, step, seen if here else None, due, marks)
        shows = self.version(seen) if here else "no row"
        because.append(
            f"{steps.name(step)} says it holds position {self.position(int(steps.reached[step]))}, where the source "
            f"had {held}; the target has {shows}"
        )
        return self.case(headline, because, key, marks)

    def case(self, headline: str, because: Sequence[str], key: int, guilty: Collection[Mark]) -> WitnessCase:
        """A witness with the timeline of one key around its guilty events."""
        return WitnessCase(headline, tuple(because), KeyTimeline(self._of, key, guilty).moments())

    def _route(self, key: int, step: int, seen: int | None, due: int, marks: set[Mark]) -> list[str]:
        """Tells how the version that was due was delivered, and how the version that the target shows instead came
        there."""
        target, deliveries, steps = self._of.target, self._of.deliveries, self._of.steps
        mine = np.flatnonzero(deliveries.rows.key == key)
        lines = []
        if due >= 0 and seen != due:
            carried = mine[deliveries.version[mine] == due]
            lines.append(
                f"{self.delivery(int(carried[-1]))} was delivered"
                if len(carried)
                else f"{self.version(due)} was never delivered"
            )
        change = int(target.at(np.array([key]), np.array([step]))[0])
        if change < 0:
            return [*lines, "no commit had changed the key in the target"]
        written = int(target.step[change])
        applied = int(steps.segment[written])
        before = mine[deliveries.segment[mine] <= applied]
        brought = before[deliveries.version[before] == seen] if seen is not None else before[:0]
        if len(brought):
            lines += self._brought(before, int(brought[-1]), lines, marks)
        elif seen is not None and len(deliveries.rows):
            lines.append(f"no delivery up to segment {applied} holds what the target shows")
        marks.add(Mark("target", written))
        if written != step:
            lines.append(f"{steps.name(written)} wrote that, and no state since then has changed it")
        return lines

    def _brought(self, before: Array, last: int, said: Sequence[str], marks: set[Mark]) -> list[str]:
        """The delivery behind what the target shows, and the newer one that had gone before it, if any."""
        version = self._of.deliveries.version
        marks.add(Mark("delivery", last))
        lines = []
        earlier = before[(before < last) & (version[before] > version[last])]
        if len(earlier):
            newest = int(earlier[np.argmax(version[earlier])])
            marks.add(Mark("delivery", newest))
            line = f"{self.delivery(newest)} was delivered"
            lines += [line] if line not in said else []
        return [
            *lines,
            f"{self.delivery(last)}{' came later and' if len(earlier) else ''} is what the target shows",
        ]
