"""The target's states as net changes per key and committed state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.history.commits import Steps
from verify.history.history import PUT
from verify.history.rows import Array, Rows


@dataclass(frozen=True, slots=True)
class Target:
    """Net changes sorted by key, then step: each key's row after each state that touched it.

    Attributes:
        rows: as left behind by the state; ``kind`` is PUT where the key is present.
        step: the state.
        source_row: index of each in the history's changes.
        steps: the number of states.
    """

    rows: Rows
    step: Array
    source_row: Array
    steps: int

    def at(self, key: Array, step: Array) -> Array:
        """Index of each key's newest net change at or before a step, -1 without one."""
        if not len(self.step):
            return np.full(len(key), -1, np.int64)
        size = self.steps + 1
        codes = self.rows.key.astype(np.int64) * size + self.step
        place = np.searchsorted(codes, key.astype(np.int64) * size + step, "right") - 1
        found = (place >= 0) & (self.rows.key[place] == key)
        return np.where(found, place, -1)

    def before(self) -> Array:
        """Per net change the one before of the same key, -1 for a key's first."""
        place = np.arange(len(self.step)) - 1
        first = np.ones(len(place), bool)
        first[1:] = self.rows.key[1:] != self.rows.key[:-1]
        return np.where(first, -1, place)


def read_target(changes: Rows, steps: Steps) -> Target:
    """Nets the changes of each state: of several changes of one key the last one stands."""
    code = changes.key.astype(np.int64) * (len(steps) + 1) + steps.of_change
    order = np.argsort(code, kind="stable")
    code = code[order]
    last = np.ones(len(code), bool)
    last[:-1] = code[1:] != code[:-1]
    kept = order[last]
    return Target(changes.take(kept), steps.of_change[kept], kept, len(steps))


def taken_or_absent(rows: Rows, index: Array) -> Rows:
    """``rows.take`` where -1 stands for a row that is not there."""
    if not len(rows):
        nothing = np.zeros(len(index), np.int64)
        return Rows(nothing, nothing, nothing, nothing, nothing, nothing.astype(bool))
    taken = rows.take(np.maximum(index, 0))
    return Rows(
        taken.key,
        taken.session,
        taken.number,
        np.where(index >= 0, taken.kind, 0),
        taken.value,
        taken.known,
    )


def present(rows: Rows) -> Array:
    """Marks the rows that are present."""
    return np.asarray(rows.kind == PUT)
