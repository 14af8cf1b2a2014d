"""Source ports -> core -> event log."""

from __future__ import annotations

import gc
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from migrator.errors import MigratorError, SchemaError
from migrator.model.position import Position
from migrator.ports.eventlog import EventLogRoom, SegmentWriter
from migrator.ports.requests import RequestStore
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.fair_inputs import FairInputs
from migrator.run.capture.inputs import ChunkRead, Halted, Inputs
from migrator.run.capture.retention_watch import RetentionWatch
from migrator.run.capture.room_gate import RoomGate
from migrator.run.capture.source_threads import started_threads, wait
from migrator.run.capture.steps import CaptureSteps, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step

_LOOK_S, _PATIENCE_S = 0.1, 60.0
"""Time between two looks at what was applied before a halt, and how long nothing may come of it."""
NEW_OBJECTS = 200_000
"""More objects made than freed since the last look; Python's own number is 700."""


class CaptureLoop:
    """Reads log and chunks at the same time and appends segments.

    Args:
        ports: factories of source connections.
        attempt: what is captured, and from where on.
        writer: the event log, already under this leader's epoch.
        requests: where dump requests are kept.
        room: for the event log.
        progress: where counters go.
        step: hook at named points.
    """

    def __init__(
        self,
        ports: SourcePorts,
        attempt: Attempt,
        writer: SegmentWriter,
        requests: RequestStore,
        room: EventLogRoom,
        progress: Progress,
        step: Step = no_step,
    ):
        self._ports = ports
        self._attempt = attempt
        self._limits = attempt.limits
        self._writer = writer
        self._requests = requests
        self._room = room
        self._progress = progress
        self._step = step

    def run(self, stopping: Stopping) -> None:
        """Captures until a stop is requested; what was read but isn't durable then will be read again."""
        with seldom_collected():
            self._run(stopping)

    def _run(self, stopping: Stopping) -> None:
        gate = RoomGate(self._room, self._limits, self._progress, stopping)
        inputs: Inputs = FairInputs(maxsize=16)
        before = self._attempt.checkpoint
        try:
            steps = self._begun(inputs, stopping)
        except SchemaError as error:
            self._await_applied(None if before is None else before.position, error, stopping)
            raise
        if steps is None:
            return
        ask = self._ports.retention
        watch = None if ask is None else RetentionWatch(ask, self._progress, self._attempt.checkpoint)
        threads = started_threads(
            stopping,
            {
                "log": steps.log.run,
                "witnesses": steps.witnesses.run,
                "requests": steps.requests.run,
                **({"load": steps.load.run} if steps.load is not None else {}),
                **({"retention": watch.run} if watch is not None else {}),
            },
        )
        written = read = time.monotonic()
        workers = 0
        while not stopping.requested():
            fresh = steps.chunks[workers:]  # an operator may want more of them at any time
            threads += started_threads(
                stopping, {f"chunks {n}": pump.run for n, pump in enumerate(fresh, workers + 1)}
            )
            workers += len(fresh)
            rested = time.monotonic() - read >= steps.rest_s()
            if rested and self._room.used_bytes() <= self._limits.backlog_bytes:
                steps.ask()
            with suppress(queue.Empty):  # even if nothing comes in, the pending segment may be due
                item = inputs.get(timeout=self._limits.linger_s)
                if isinstance(item, ChunkRead):
                    read = time.monotonic()
                if isinstance(item, Halted):
                    steps.write(gate.admit)
                    self._await_applied(steps.settled, item.error, stopping)
                    raise item.error
                steps.take(item)
            if steps.due(time.monotonic() - written):
                steps.write(gate.admit)
                written = time.monotonic()
        for thread in threads:
            thread.join(timeout=10)
        if steps.noted() and not stopping.has_failed():  # by the last look: the next reader begins with it
            steps.write(gate.admit)

    def _await_applied(self, settled: Position | None, halt: SchemaError, stopping: Stopping) -> None:
        """Waits until the target has all that was captured before a halt, as long as it comes nearer.

        Whoever mends the mapping begins with the rows behind the change: those before it can be mapped only by the
        mapping that was made for them.
        """
        if not self._attempt.applied:
            return
        why = f"{halt.what} ({halt.where})"
        self._progress.warn("halt", f"{why}: what was captured before it is applied, then the run ends")
        seen, since = 0, time.monotonic()
        while not stopping.wait(_LOOK_S):
            now = self._progress.snapshot()
            if now.applied_batches != seen:
                seen, since = now.applied_batches, time.monotonic()
            done = settled is None or (now.applied is not None and now.applied >= settled)
            if done or time.monotonic() - since > _PATIENCE_S:
                return

    def _begun(self, inputs: Inputs, stopping: Stopping) -> CaptureSteps | None:
        """The steps, the log being connected; None if stopped before it could be.

        A retryable failure is tried again here as it is later on: a leader that died a moment ago may hold the
        replication slot until the source notices.
        """
        failures = 0
        while not stopping.requested():
            try:
                return CaptureSteps(
                    self._ports,
                    self._attempt,
                    self._writer,
                    self._requests,
                    inputs,
                    self._progress,
                    self._step,
                )
            except MigratorError as error:
                if not error.retryable:
                    raise
                self._progress.met(error)
                self._progress.set(note=f"source log: {error.what}; trying again")
                wait(failures, stopping)
                failures += 1
        return None


__all__ = ["CaptureLoop", "SourcePorts"]


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Within it, cycles are looked for seldom, and not among the objects that were there before.

    A backlog is hundreds of thousands of small tuples on their way from the log to a segment. None is ever
    part of a cycle, all are freed as soon as they are written, and to go through them again and again took
    more time than to read the log. What does end in cycles (errors with their tracebacks) is still found.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
