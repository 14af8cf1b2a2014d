"""The lag of the target behind the source, from what the source says of its own position, and when.

No clock is compared with another one's: the source is asked where its log ends, now and then, by a steady clock of
ours. Once the target has reached an answer, it has everything that was committed before that question. So while it
is behind, the oldest change that it lacks is at most as old as the newest question whose answer it has reached. That
age rises with the clock while nothing is applied, it is 0 when the newest answer is reached, and it isn't known
when the source hasn't answered for a while: what it committed meanwhile nobody has seen.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from migrator.model.observed.observation import Applied, Lag
from migrator.model.position import Position

STALE_S = 5.0
"""An answer of the source says nothing about now after so many seconds."""
_KEPT = 2048
"""Answers remembered that the target hasn't reached."""


@dataclass(slots=True)
class _Answer:
    at_s: float
    end: Position


class LagMeter:
    """The answers of the source that the target hasn't reached, and the newest one that it has. No thread-safety.

    Times are seconds by one steady clock. ``known_s``: everything committed before it is known to be applied.
    """

    def __init__(self, known_s: float | None = None):
        self._known_s = known_s
        self._ahead: deque[_Answer] = deque()
        self._newest: _Answer | None = None
        self._problem = ""

    @property
    def newest(self) -> Position | None:
        """The end of the source's log by its last answer."""
        return None if self._newest is None else self._newest.end

    @property
    def known_s(self) -> float | None:
        """Everything committed before this moment is applied, as far as was seen; None: never known."""
        return self._known_s

    def known_before(self, at_s: float) -> None:
        """Takes another's word: everything committed before a moment is applied."""
        self._known_s = at_s if self._known_s is None else max(self._known_s, at_s)

    def answered(self, asked_s: float, end: Position) -> None:
        """The source says where its log ends. ``asked_s``: when it was asked, not when it answered."""
        self._problem = ""
        self._newest = _Answer(asked_s, end)
        if self._ahead and end < self._ahead[-1].end:
            self._ahead.clear()  # another server, or one that was put back: old answers say nothing about it
        if self._ahead and self._ahead[-1].end == end:
            self._ahead[-1].at_s = asked_s
            return
        if len(self._ahead) >= _KEPT:  # those dropped make the age larger, never smaller
            self._ahead = deque(list(self._ahead)[::2])
        self._ahead.append(_Answer(asked_s, end))

    def refused(self, why: str) -> None:
        """The source can't be asked."""
        self._problem = why

    def reading(self, now_s: float, applied: Position | None) -> Lag:
        """The lag at a moment, with what the target has applied by then."""
        while applied is not None and self._ahead and self._ahead[0].end <= applied:
            self.known_before(self._ahead.popleft().at_s)
        newest, known = self._newest, self._known_s
        at_most = None if known is None else max(0.0, now_s - known)
        if newest is None or now_s - newest.at_s > STALE_S:
            silent = "" if newest is None else f"no answer of the source for {now_s - newest.at_s:,.0f} s"
            unknown = self._problem or silent or "the source wasn't asked yet"
            return Lag(None, None, at_most, unknown)
        if applied is None:
            return Lag(None, None, at_most, "nothing is applied yet")
        if applied >= newest.end:
            return Lag(0, 0.0, at_most, "")
        if at_most is None:
            return Lag(
                newest.end.order - applied.order, None, None, "no moment is known at which it had caught up"
            )
        return Lag(newest.end.order - applied.order, at_most, at_most, "")


def seen_once(end: Position, applied: Position | None, known: Applied | None, now_us: int) -> Lag:
    """The lag by one answer of the source, for whoever looks from outside a run.

    Args:
        end: where the source says its log ends.
        applied: where the target is; None: nothing is applied.
        known: what a run saw last; it doesn't count where the target is before it.
        now_us: by this machine's clock, microseconds since 1970.
    """
    counts = known is not None and applied is not None and applied.order >= known.order
    at_most = max(0.0, (now_us - known.until_us) / 1e6) if known is not None and counts else None
    if applied is None:
        return Lag(None, None, None, "nothing is applied yet")
    if applied >= end:
        return Lag(0, 0.0, at_most, "")
    return Lag(
        end.order - applied.order, at_most, at_most, "" if at_most is not None else "no run saw it caught up"
    )
