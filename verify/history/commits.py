"""The target's committed states, in order: every commit, and rogue writes between commits.

A rogue write is a row that no batch wrote; it has commit 0. It stands where the recorder saw it, between the commits
around it. Such rows make a state of their own, at the position of the commit before, so that their damage shows at
once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from migrator.errors import VerifyError
from verify.history.history import History
from verify.history.rows import Array, integers
from verify.history.versions import BEFORE_ALL, SourceLog


@dataclass(frozen=True, slots=True)
class Steps:
    """Committed states of the target; a step's number is its index here.

    Attributes:
        commit: the commit's number; 0 for rogue writes.
        recorded: index of the step's commit in the history's table; of the commit before for rogue writes
            (-1: none).
        epoch, segment, order: of the ledger.
        prefix: rows of the log that the position includes.
        reached: the largest prefix so far; differs from ``prefix`` only where the position fell.
        of_change: per row of the history's changes, its step.
    """

    commit: Array
    recorded: Array
    epoch: Array
    segment: Array
    order: Array
    prefix: Array
    reached: Array
    of_change: Array

    def __len__(self) -> int:
        return len(self.commit)

    def name(self, step: int) -> str:
        """Names a step for people: ``commit 120``."""
        if self.commit[step]:
            return f"commit {self.commit[step]}"
        before = self.recorded[step]
        return "a rogue write " + (f"after commit {self.commit[step - 1]}" if before >= 0 else "at the start")

    def first_showing(self, versions: Array) -> Array:
        """The first step whose position includes each version; the number of steps if none does."""
        return np.searchsorted(self.reached, versions, "right")

    def of_segment(self, segments: Array) -> Array:
        """The first step that has applied each segment; the number of steps if none has."""
        return np.searchsorted(np.maximum.accumulate(self.segment), segments, "left")


def read_steps(history: History, log: SourceLog) -> Steps:
    """Reads the states. Raises ``VerifyError`` where commits or changes are not recorded in commit order."""
    numbers = integers(history.commits["commit"], 0)
    labels = integers(history.changes["commit"], 0)
    _check_order(numbers, labels)
    rogue = labels == 0
    # How many commits had been seen when each row was written.
    seen = np.searchsorted(numbers, np.maximum.accumulate(labels), "right") if len(labels) else labels
    rogue_after = np.unique(seen[rogue])
    recorded = np.concatenate([np.arange(len(numbers)), rogue_after - 1])
    is_rogue = np.arange(len(recorded)) >= len(numbers)
    order_of_steps = np.lexsort((is_rogue, recorded))
    recorded, is_rogue = recorded[order_of_steps], is_rogue[order_of_steps]
    before = np.searchsorted(rogue_after, np.arange(len(numbers)), "right")  # rogue steps before each commit
    of_change = np.where(
        rogue,
        seen + np.searchsorted(rogue_after, seen, "left"),
        seen - 1 + before[np.maximum(seen - 1, 0)] if len(numbers) else 0,
    )

    def column(name: str, missing: int) -> Array:
        values = np.append(
            integers(history.commits[name], missing), missing
        )  # the last one: before all commits
        return np.asarray(values[recorded])

    order = column("order", BEFORE_ALL)
    prefix = np.where(recorded >= 0, log.prefix(order), 0)
    return Steps(
        commit=np.where(is_rogue, 0, np.append(numbers, 0)[recorded]),
        recorded=recorded,
        epoch=column("epoch", -1),
        segment=column("segment", -1),
        order=order,
        prefix=prefix,
        reached=np.maximum.accumulate(prefix) if len(prefix) else prefix,
        of_change=of_change.astype(np.int64),
    )


def _check_order(numbers: Array, labels: Array) -> None:
    if (numbers[1:] <= numbers[:-1]).any() or (numbers <= 0).any():
        raise VerifyError("the recorded commits are not numbered 1, 2, 3, ... in commit order")
    own = labels[labels != 0]
    if (own[1:] < own[:-1]).any():
        raise VerifyError("the recorded changes of the target are not in commit order")
    unknown = np.setdiff1d(own, numbers)
    if len(unknown):
        raise VerifyError(f"changes of commit {int(unknown[0])} were recorded, but not the commit")
