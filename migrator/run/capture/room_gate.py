"""Holds capture back while the event log has no room, before the disk is full.

What is held back stays in the source: its log is neither read on nor acknowledged. Two things must not come of it.

A deadlock: apply takes whole transactions only. In the middle of one, once everything before it has been applied
and released, waiting would be for nothing: apply waits for the transaction's end, which waits here. Then the
bound of size gives way, and a lack of free space is a named error. Between transactions the bound of size
gives way as well when nothing is left to release: one segment may be larger than it.

A full disk: a segment is let in by its size in memory, which is about what it takes before compression.
"""

from __future__ import annotations

from migrator.errors import EventLogError
from migrator.model.limits import CaptureLimits
from migrator.ports.eventlog import EventLogRoom, SegmentContent
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_LOOK_EVERY_S = 0.1
_MOST_FREE_BYTES = 256 << 20
_SHARE_OF_DISK = 50
_WHAT = "event log"


class RoomGate:
    """Lets segments through while there is room.

    Args:
        room: for the event log.
        limits: the user's bounds.
        progress: gets a warning while something waits.
        stopping: of the run; ends a wait.
    """

    def __init__(self, room: EventLogRoom, limits: CaptureLimits, progress: Progress, stopping: Stopping):
        self._room = room
        self._limits = limits
        self._progress = progress
        self._stopping = stopping
        self._shut = False

    def admit(self, content: SegmentContent) -> bool:
        """Waits until there is room for a segment; false: a stop came first.

        Raises ``EventLogError`` where there never will be.
        """
        size_bytes = sum(data.rows.nbytes for data in content.data)
        while reason := self._reason(size_bytes, content.ends_transaction):
            self._shut = True
            self._progress.warn(_WHAT, f"capture waits: {reason}")
            if self._stopping.wait(_LOOK_EVERY_S):
                return False
        if self._shut:
            self._progress.warn(_WHAT)
            self._shut = False
        return True

    def _reason(self, size_bytes: int, ends_transaction: bool) -> str:
        """Returns the reason for which a segment must wait; empty if it needn't."""
        bound = self._limits.event_log_bytes
        too_large = bool(bound) and self._room.used_bytes() + size_bytes > bound
        floor = self._floor()
        free = self._room.free_bytes()
        lacks_space = free - size_bytes < floor
        if not too_large and not lacks_space:
            return ""
        shrinks = self._room.may_shrink()
        if lacks_space and not shrinks and not ends_transaction:
            raise _does_not_fit(size_bytes, free, floor)
        if lacks_space:
            return (
                f"{_mib(free)} are free on the event log's disk, the next segment needs up to {_mib(size_bytes)} and"
                f" {_mib(floor)} are to stay free; {self._awaited(shrinks)}"
            )
        if not shrinks:
            return ""
        return (
            f"the event log holds {_mib(self._room.used_bytes())}, event_log_bytes = {bound};"
            f" {self._awaited(shrinks)}"
        )

    def _floor(self) -> int:
        disk = self._room.disk_bytes()
        chosen = self._limits.event_log_free_bytes
        if chosen >= disk:
            raise EventLogError(
                "so much can never be free on the event log's disk",
                where="capture.event_log_free_bytes",
                cause=f"it is {chosen:,}, the disk has {disk:,} bytes",
                remedy="lower the setting, or put the state folder on a larger disk",
            )
        return chosen or min(_MOST_FREE_BYTES, disk // _SHARE_OF_DISK)

    def _awaited(self, shrinks: bool) -> str:
        keepers = self._room.kept_by()
        if keepers:
            return f"kept for {', '.join(keepers)}: run that output, or forget it (migrator events --forget)"
        if shrinks:
            return "it goes on by itself when the target has applied more"
        return "nothing of the event log can be removed: make room on this disk"


def _does_not_fit(size_bytes: int, free: int, floor: int) -> EventLogError:
    return EventLogError(
        "a transaction of the source doesn't fit on the event log's disk",
        where="capture.event_log_free_bytes",
        cause=f"its next segment needs up to {size_bytes:,} bytes, {free:,} are free, {floor:,} are to stay free,"
        " and everything before the transaction is applied and removed",
        remedy="make room on this disk, then start again: nothing is lost, capture goes on inside the transaction",
    )


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"
