"""Memory of a leader about the switch that it conducts. The next leader does without."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from migrator.model.cutover.fence import OpenTransaction
from migrator.model.cutover.record import Phase
from migrator.model.position import Position


@dataclass(slots=True)
class Underway:
    """The step under way.

    Attributes:
        phase, turn: which step it is.
        began_s: when, by the monotonic clock.
        goal: the place in the log that is waited for.
        equal: the segment up to which the step has found everything equal; None where it compared nothing.
        hook_failed: how the hook failed that an undo has called; empty: it didn't.
        pointed_back: whether an undo has called it.
        seen: when transactions that are in the way were seen first, by session and beginning.
    """

    phase: Phase = Phase.IDLE
    turn: int = -1
    began_s: float = 0.0
    goal: Position | None = None
    equal: int | None = None
    hook_failed: str = ""
    pointed_back: bool = False
    seen: dict[tuple[str, str], float] = field(default_factory=dict)

    def lasting(self, found: Sequence[OpenTransaction], limit_s: float) -> list[OpenTransaction]:
        """Returns those that were found for longer than that, look by look."""
        now = time.monotonic()
        self.seen = {key: self.seen.get(key, now) for key in ((one.id, one.since) for one in found)}
        return [one for one in found if now - self.seen[one.id, one.since] > limit_s]


@dataclass(slots=True)
class Watch:
    """Time of a switch by a clock that may be set meanwhile.

    Args:
        monotonic: seconds by a clock that nobody sets.
    """

    monotonic: Callable[[], float] = time.monotonic
    _turn: int = -1
    _from_s: float = 0.0

    def now_s(self, turn: int, since_s: float, clock_s: float) -> float:
        """Returns the time, seconds since 1970: the clock's, or a later one where more has passed than it says.

        Args:
            turn: which switch it is.
            since_s: when it began, by the clock of whoever led then.
            clock_s: the time by the clock now. Set back, or behind the one before, it would keep a side closed for
                longer than was allowed.
        """
        if self._turn != turn:
            self._turn, self._from_s = turn, self.monotonic()
        return max(clock_s, since_s + self.monotonic() - self._from_s)
