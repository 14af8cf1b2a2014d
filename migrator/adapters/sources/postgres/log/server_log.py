"""The log that a server has: the system's identity, and the timelines that its history is made of.

A standby that is promoted begins a new timeline at the place F that it had replayed. Its log and the old primary's
are the same up to F and differ behind it, under the same numbers. A position behind F, of the old timeline, names a
transaction that the failover lost; the same number on the new timeline is somewhere in the middle of other ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from migrator.adapters.sources.postgres.lsn import format_lsn, parse_lsn

_SEPARATOR = "/"
History = Callable[[int], str]
"""The content of a timeline's history file."""


@dataclass(frozen=True, slots=True)
class ServerLog:
    """The answer to IDENTIFY_SYSTEM: system identifier, timeline, and the place up to which the log is flushed.

    ``timeline`` is 0 where it isn't part of a position: on a standby, which may be promoted while it is read,
    and in tokens of earlier versions.
    """

    system: str
    timeline: int
    flushed: int = 0

    def label(self) -> str:
        """Returns what a token says about the server."""
        return f"{self.system}{_SEPARATOR}{self.timeline}" if self.timeline else self.system

    def misses(self, label: str, lsn: int, history: History) -> str:
        """Says why this log doesn't lead to ``lsn`` of the log that ``label`` names; empty if it does."""
        system, _, number = label.partition(_SEPARATOR)
        timeline = int(number) if number.isdigit() else 0
        if system != self.system:
            return f"the position is of server {system}, this is server {self.system}"
        if not timeline or not self.timeline or timeline == self.timeline:
            return ""
        left_at = _left_at(history(self.timeline), timeline) if timeline < self.timeline else None
        if left_at is None:
            return f"the position is of timeline {timeline}, which timeline {self.timeline} here doesn't come from"
        if left_at < lsn:
            fork = f"this server left timeline {timeline} at {format_lsn(left_at)}"
            return (
                f"the position is {format_lsn(lsn)}, but {fork}: the target may have what the failover lost"
            )
        return ""


def has_timeline(label: str) -> bool:
    """Tells whether a token's label is of a primary's log, by this or a later version than those that name no
    timeline."""
    return _SEPARATOR in label


def _left_at(history: str, timeline: int) -> int | None:
    """Finds where a history leaves a timeline for the next one: its lines are ``timeline, place, reason``."""
    for line in history.splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == str(timeline):
            return parse_lsn(words[1])
    return None
