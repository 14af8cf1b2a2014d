"""The changes of the open transaction that were not delivered yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrator.model.event import ChangeCodec, ChangeRun


@dataclass(slots=True)
class _Run:
    codec: ChangeCodec
    items: list[Any]
    bytes: int


class PendingChanges:
    """Changes in log order, as runs of one codec each. ``size``: how many; ``bytes``: of the events they came
    in."""

    def __init__(self) -> None:
        self.size = 0
        self.bytes = 0
        self._runs: list[_Run] = []

    def add(self, codec: ChangeCodec, items: list[Any], size: int) -> None:
        """The changes of a row event of ``size`` bytes."""
        self.size += len(items)
        self.bytes += size
        if self._runs and self._runs[-1].codec is codec:
            last = self._runs[-1]
            last.items += items
            last.bytes += size
        elif items:
            self._runs.append(_Run(codec, items, size))

    def take(self, most: int) -> tuple[ChangeRun, ...]:
        """The first changes, at most so many; what is left counts as new bytes."""
        if most >= self.size:
            taken = tuple([ChangeRun(run.codec, run.items, run.bytes) for run in self._runs])
            self._runs, self.size, self.bytes = [], 0, 0
            return taken
        first, rest = self._split(most)
        self._runs, self.size, self.bytes = rest, self.size - most, 0
        return tuple([ChangeRun(run.codec, run.items, run.bytes) for run in first])

    def forget_from(self, place: int) -> None:
        """Takes all changes back but the first ``place``."""
        self._runs, _ = self._split(place)
        self.size = min(self.size, place)

    def _split(self, place: int) -> tuple[list[_Run], list[_Run]]:
        first, rest = [], []
        for run in self._runs:
            count = len(run.items)
            if place >= count:
                first.append(run)
            elif place <= 0:
                rest.append(run)
            else:
                share = run.bytes * place // count
                first.append(_Run(run.codec, run.items[:place], share))
                rest.append(_Run(run.codec, run.items[place:], run.bytes - share))
            place -= count
        return first, rest
