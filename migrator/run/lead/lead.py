"""The lead among several processes: waited for as a standby, doubted while the session is, told of to onlookers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from migrator.errors import ConnectionFailed, FencedError, MigratorError
from migrator.model.event import LogRecord
from migrator.model.hint import Hint
from migrator.model.position import Position
from migrator.model.segment import Manifest
from migrator.ports.eventlog import SegmentContent, SegmentWriter
from migrator.ports.hints import Hints
from migrator.ports.leadership import Leadership
from migrator.ports.mirror import Mirror
from migrator.ports.source import LogReader
from migrator.ports.target import Target, TargetBatch, TargetRows
from migrator.run.failure import Stopping
from migrator.run.passed import PassedOn
from migrator.run.progress import Progress, phase

_LOOK_S = 1.0
_HINT_EVERY_S = 1.0
_DOUBT_S = 0.02
_DOUBT = "leadership in doubt: the session isn't confirmed; nothing is written meanwhile"


def stood_by(
    leadership: Leadership, stopping: Stopping, progress: Progress, warm: Callable[[], None]
) -> bool:
    """Waits as a standby until nobody leads or a stop is requested; whether somebody did lead.

    ``warm`` is called once, as soon as somebody leads: whatever makes a takeover quicker. A place of
    leadership that can't be reached is asked again for as long as it takes: nobody can lead meanwhile.
    """
    waited = False
    while not stopping.requested():
        try:
            leads = leadership.stand_by(_LOOK_S if waited else 0.0)
        except ConnectionFailed as error:
            if not error.retryable:
                raise
            progress.met(error)
            progress.set(note=f"standby: {error.what}; trying again", standing_by=True)
            stopping.wait(_LOOK_S)
            continue
        if not leads:
            break
        progress.set(note=f"standby: {leads} leads", standing_by=True)
        if not waited:
            waited = True
            warm()
    progress.set(note="", standing_by=False)
    return waited


class Lead:
    """A lease in use: who writes asks first.

    Args:
        leadership: holds the lease.
        stopping: of the run.
        progress: gets a note while there is doubt.
    """

    def __init__(self, leadership: Leadership, stopping: Stopping, progress: Progress):
        self._leadership = leadership
        self._stopping = stopping
        self._progress = progress

    def await_sure(self) -> None:
        """Returns once nobody else can lead, which is at once as long as the session lives.

        Raises ``FencedError`` when the lease is lost or a stop is requested meanwhile.
        """
        doubted = False
        while not self._leadership.sure():
            if not self._leadership.held():
                raise lost()
            doubted = True
            self._progress.set(note=_DOUBT)
            if self._stopping.wait(_DOUBT_S):
                raise FencedError(
                    "the run was stopped while its leadership was in doubt",
                    cause="the place of leadership didn't answer",
                    remedy="start again: nothing is lost",
                )
        if doubted:
            self._progress.set(note="")


def lost() -> FencedError:
    """The lease is gone."""
    return FencedError(
        "the lease was lost",
        cause="the session expired, or wasn't confirmed for so long that another process may lead",
        remedy="start again; with --ha a process stands by instead of ending",
    )


def overtaken(epoch: int, known_epoch: Callable[[], int]) -> FencedError | None:
    """Returns the error to raise where the target has seen a later leader; None where it hasn't, or doesn't answer.

    A leader on another machine, with a state folder of its own, took no lease from us.

    Args:
        epoch: ours.
        known_epoch: asks the target for the latest that it saw.
    """
    try:
        latest = known_epoch()
    except MigratorError:
        return None  # what the target says now is no cause of what was met before
    if latest <= epoch:
        return None
    return FencedError(
        f"another process leads this migration: epoch {latest}, ours is {epoch}",
        where="the target's ledger",
        remedy="stop this process; it must not write any more",
    )


class SureWriter:
    """A ``SegmentWriter`` that appends only while the lease is sure.

    The event log's own fence stays what protects it: this only keeps a leader from working on in vain.
    """

    def __init__(self, writer: SegmentWriter, lead: Lead):
        self._writer = writer
        self._lead = lead

    def last(self) -> Manifest | None:
        """See the port."""
        return self._writer.last()

    def append(self, content: SegmentContent) -> Manifest:
        """See the port; also raises what ``Lead.await_sure`` raises."""
        self._lead.await_sure()
        return self._writer.append(content)

    def awaited(self) -> bool:
        """See the port."""
        return self._writer.awaited()


class SureTarget(PassedOn):
    """A ``Target`` that applies only while the lease is sure. The ledger's epoch stays what protects it."""

    def __init__(self, target: Target, lead: Lead):
        super().__init__(target)
        self._lead = lead

    def apply(self, batch: TargetBatch) -> None:
        """See the port; also raises what ``Lead.await_sure`` raises."""
        self._lead.await_sure()
        super().apply(batch)

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """See the port; also raises what ``Lead.await_sure`` raises."""
        self._lead.await_sure()
        super().fill(piece)


class AppliedOnly:
    """A ``LogReader`` that lets the source forget only what the target holds.

    Another machine can't go on from this one's event log: it reads the source again from the ledger's position.
    """

    def __init__(self, reader: LogReader, applied: Callable[[], Position | None]):
        self._reader = reader
        self._applied = applied

    def start(self, after: Position | None) -> Position:
        """See the port."""
        return self._reader.start(after)

    def read(self, timeout_s: float) -> list[LogRecord]:
        """See the port."""
        return self._reader.read(timeout_s)

    def acknowledge(self, position: Position) -> None:
        """See the port: the applied position, if there is one, instead of what only our event log holds."""
        applied = self._applied()
        if applied is not None:
            self._reader.acknowledge(min(applied, position))

    def finish(self) -> None:
        """See the port."""
        self._reader.finish()

    def close(self) -> None:
        """See the port."""
        self._reader.close()


def tell(
    hints: Hints,
    epoch: int,
    last: Callable[[], Manifest | None],
    total_bytes: Callable[[], int],
    progress: Progress,
    stopping: Stopping,
) -> None:
    """Tells onlookers once a second how the run stands, until a stop is requested. What can't be told isn't."""
    while not stopping.wait(_HINT_EVERY_S):
        newest = last()
        now = progress.snapshot()
        hint = Hint(
            epoch=epoch,
            at_us=time.time_ns() // 1000,
            segment=newest.number if newest is not None else 0,
            event_log_bytes=total_bytes(),
            checkpoint=newest.checkpoint if newest is not None else None,
            note=now.note,
            warnings=now.warnings,
            phase=phase(now),
            applied=progress.known_applied(),
        )
        try:
            hints.publish(hint)
        except MigratorError:
            continue  # the lease's own session says whether that matters
