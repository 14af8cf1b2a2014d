"""The plan of a scenario's faults: when each fires and heals, and what became of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from scenarios.faults.fault import PlacedFault
from scenarios.faults.points import PointServer, parse_point
from scenarios.faults.registry import fault
from scenarios.scenario import FaultSpec
from scenarios.world import World
from verify.history.history import table_of

CAPTURE_BEGINS, APPLIED = "log.connected", "apply.committed"
"""Points that every run announces: when the log is being read, and before applied segments are released."""


@dataclass(slots=True)
class Planned:
    """A fault and what became of it; times in microseconds since the run's start."""

    spec: FaultSpec
    placed: PlacedFault
    fired_us: int | None = None
    fired_at_s: float = 0.0
    healed_us: int | None = None

    @property
    def fired(self) -> bool:
        """Returns whether the fault is known to have done something."""
        return self.fired_us is not None and bool(self.placed.effect())


class FaultPlan:
    """Fires faults at named points (in the point server's threads) and after so many changes (in ``tick``).

    Args:
        specs: the scenario's faults.
        world: where they happen.
        points: open, the pipeline not yet started.
        begin: called when the log is read for the first time, before its first record.
        keep: called whenever the pipeline is about to release segments.

    The pipeline is held during both calls.
    """

    def __init__(
        self,
        specs: Sequence[FaultSpec],
        world: World,
        points: PointServer,
        begin: Callable[[], None],
        keep: Callable[[], None],
    ):
        self.faults = [Planned(spec, fault(spec, world)) for spec in specs]
        self._world = world
        self._points = points
        self._begin = begin
        self._keep = keep
        self._busy = threading.RLock()
        self._at: dict[tuple[str, int], list[Planned]] = {}
        for planned in self.faults:
            if planned.spec.at:
                self._at.setdefault(parse_point(planned.spec.at), []).append(planned)
        points.on(CAPTURE_BEGINS, 1, self._begun)
        for (point, count), due in self._at.items():
            if point != APPLIED and (point, count) != (CAPTURE_BEGINS, 1):
                points.on(point, count, lambda due=due: self._fire_all(due))  # type: ignore[misc]
        self._await_applied(1)

    def environment(self) -> dict[str, str]:
        """Variables for the pipeline: its points, and what faults need."""
        found = dict(self._points.environment())
        for planned in self.faults:
            found.update(_joined(found, planned.placed.environment()))
        return found

    def prepare(self) -> None:
        """Prepares every fault, then fires those with neither ``at`` nor ``after_changes``: there from the
        start."""
        for planned in self.faults:
            planned.placed.prepare()
        # Makes the files that the pipeline's variables name: a fault that is fired at once needs them as well.
        self.environment()
        self._fire_all(
            [planned for planned in self.faults if not planned.spec.at and not planned.spec.after_changes]
        )

    def tick(self, changes: int) -> None:
        """Fires faults that are due after so many changes; heals those whose time is over. Raises a fault's error."""
        self._points.raise_failure()
        for planned in self.faults:
            spec = planned.spec
            if planned.fired_us is None and spec.after_changes and changes >= spec.after_changes:
                self._fire_all([planned])
            ill = planned.fired_us is not None and planned.healed_us is None
            if (
                ill
                and spec.heal_after_s is not None
                and time.monotonic() >= planned.fired_at_s + spec.heal_after_s
            ):
                self._heal(planned)

    def quiet(self, action: Callable[[], None]) -> None:
        """Calls a function unless a fault is being placed, and lets none be placed meanwhile."""
        if self._busy.acquire(blocking=False):
            try:
                action()
            finally:
                self._busy.release()

    def all_fired(self) -> bool:
        """Returns whether every fault was fired (it may still wait for its byte)."""
        return all(planned.fired_us is not None for planned in self.faults)

    def all_happened(self) -> bool:
        """Returns whether every fault was fired and has done something: healed now, none would be taken back
        unseen."""
        return all(planned.fired for planned in self.faults)

    def heal(self) -> None:
        """Heals everything that was fired and not healed."""
        self._points.raise_failure()
        for planned in self.faults:
            if planned.fired_us is not None and planned.healed_us is None:
                self._heal(planned)

    def close(self) -> None:
        """Releases what the faults hold, also after a failure."""
        for planned in self.faults:
            planned.placed.close()

    def table(self) -> pa.Table:
        """The history's table of faults."""
        return table_of(
            "faults",
            {
                "name": [planned.spec.do for planned in self.faults],
                "point": [planned.spec.at for planned in self.faults],
                "fired": [planned.fired for planned in self.faults],
                "fired_us": [planned.fired_us for planned in self.faults],
                "healed_us": [planned.healed_us for planned in self.faults],
                "detail": [planned.placed.effect() for planned in self.faults],
            },
        )

    def _begun(self) -> None:
        self._begin()
        self._fire_all(self._at.get((CAPTURE_BEGINS, 1), []))

    def _await_applied(self, count: int) -> None:
        def applied() -> None:
            self._await_applied(count + 1)
            self._keep()
            self._fire_all(self._at.get((APPLIED, count), []))

        self._points.on(APPLIED, count, applied)

    def _fire_all(self, due: Sequence[Planned]) -> None:
        if not due:
            return  # a fault being placed may wait for the very process that would be held here
        with self._busy:
            for planned in due:
                planned.fired_us, planned.fired_at_s = self._world.now_us(), time.monotonic()
                planned.placed.fire()

    def _heal(self, planned: Planned) -> None:
        with self._busy:
            planned.healed_us = self._world.now_us()
            planned.placed.heal()


def _joined(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """Joins variables: lists of libraries and of points are added up, other values are replaced."""
    return {
        name: f"{below[name]}:{value}" if name == "LD_PRELOAD" and below.get(name) else value
        for name, value in above.items()
    }
