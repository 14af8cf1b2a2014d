"""Keeps changes that passed a fence from being carried across: nobody else can have made any.

They wait, in their order, with all that follows: whoever made them finds them carried over once their side is open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from migrator.errors import CutoverError
from migrator.model.cutover.record import Record, Side
from migrator.ports.target import Target, TargetBatch
from migrator.run.failure import Stopping
from migrator.run.passed import PassedOn
from migrator.run.progress import Progress

PASSED = "were committed past the fence"
"""Words of the warning by which another process finds it."""
_LOOK_S = 0.2
_ABOUT = "late writes"


class Gate:
    """Tells whether changes of a side may be carried across, and remembers those that wait.

    Args:
        side: whose changes these are.
        read: returns the record of the cut-over; None before a plan was accepted.
    """

    def __init__(self, side: Side, read: Callable[[], Record | None]):
        self._side = side
        self._read = read
        self._lock = threading.Lock()
        self._waiting = ""

    def closed(self) -> bool:
        """Asks the record. Raises ``ConnectionFailed``."""
        record = self._read()
        return record is not None and record.closed(self._side)

    def waiting(self) -> str:
        """Describes the changes that wait; empty: none do."""
        with self._lock:
            return self._waiting

    def waits(self, batch: TargetBatch | None) -> None:
        """Notes the batch that waits from now on; None: none does."""
        said = ""
        if batch is not None:
            where = f"on the {self._side} side, up to {batch.checkpoint.position.token}"
            said = f"{batch.foreign} change(s) {PASSED} {where}; they wait until that side is open again"
        with self._lock:
            self._waiting = said


@dataclass(frozen=True, slots=True)
class CutOvers:
    """A run's part in cut-overs.

    Attributes:
        gate: lets changes of its source pass.
        conduct: carries cut-overs out, in a thread of the leader of an epoch, until a stop is requested; None on the
            way back, which the other way's leader conducts.
        undo: undoes a switch under way while nobody leads; see ``unled``.
    """

    gate: Gate
    conduct: Callable[[int, Stopping, Progress], None] | None = None
    undo: Callable[[str, bool], str] | None = None

    def begin(self, epoch: int, stopping: Stopping, progress: Progress) -> None:
        """Starts the thread."""
        conduct = self.conduct
        if conduct is not None:
            stopping.thread("cut-over", lambda: conduct(epoch, stopping, progress))

    def unled(self, why: str, final: bool, progress: Progress) -> None:
        """Has no side stay closed for a leader that doesn't come: a run's attempt to lead has failed.

        Args:
            why: what ended the attempt.
            final: nobody tries again by himself, so the switch under way is undone at once; else once it is due.
            progress: gets a warning.
        """
        if self.undo is not None:
            progress.warn("cut-over", *filter(None, [self.undo(why, final)]))


def gated(target: Target, cutover: CutOvers | None, stopping: Stopping, progress: Progress) -> Target:
    """Returns the target behind the gate, where there is one."""
    return target if cutover is None else GatedTarget(target, cutover.gate, stopping, progress)


class GatedTarget(PassedOn):
    """A ``Target`` that takes changes of a side only while somebody may make some."""

    def __init__(self, target: Target, gate: Gate, stopping: Stopping, progress: Progress):
        super().__init__(target)
        self._gate, self._stopping, self._progress = gate, stopping, progress

    def apply(self, batch: TargetBatch) -> None:
        """See the port. Raises ``CutoverError`` where a stop comes while the batch waits."""
        while batch.foreign and self._gate.closed():
            self._gate.waits(batch)
            self._progress.warn(_ABOUT, self._gate.waiting())
            if self._stopping.wait(_LOOK_S):
                raise CutoverError(
                    "the run was stopped while changes waited that passed a fence",
                    cause=self._gate.waiting(),
                    remedy="look at `migrator cutover status`; they are carried over once their side is open again",
                )
        if self._gate.waiting():
            self._gate.waits(None)
            self._progress.warn(_ABOUT)
        super().apply(batch)
