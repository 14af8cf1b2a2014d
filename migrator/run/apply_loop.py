"""Event log -> Spark mapping -> one target transaction a batch."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass

from migrator.errors import MigratorError
from migrator.model.ledger import Ledger
from migrator.model.limits import ApplyLimits
from migrator.model.progress import Checkpoint
from migrator.ports.eventlog import Batch, BatchReader
from migrator.ports.target import Target, TargetBatch
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.source_threads import RETRY_WAITS_S
from migrator.run.steps import Step, no_step

MapBatch = Callable[[Batch, Checkpoint | None], TargetBatch]


@dataclass(frozen=True, slots=True)
class _Mapped:
    batch: Batch
    target: TargetBatch


class ApplyLoop:
    """Maps and applies batches; mapping runs one batch ahead of the target transaction.

    Running ahead is safe: a mapping sees only the rows of its batch, and batches are applied in order.

    Args:
        batches: the event log.
        map_batch: the mapping.
        target: the target, opened under ``epoch``.
        ledger: what the target holds.
        epoch: this leader's.
        progress: where counters go.
        step: hook at named points.
    """

    def __init__(
        self,
        batches: BatchReader,
        map_batch: MapBatch,
        target: Target,
        ledger: Ledger,
        epoch: int,
        progress: Progress,
        limits: ApplyLimits,
        step: Step = no_step,
    ):
        self._batches = batches
        self._map_batch = map_batch
        self._target = target
        self._epoch = epoch
        self._ledger = ledger
        self._progress = progress
        self._limits = limits
        self._step = step
        self._mapped: queue.Queue[_Mapped] = queue.Queue(maxsize=1)
        if ledger.checkpoint is not None:
            self._publish(ledger.checkpoint)

    def run(self, stopping: Stopping) -> None:
        """Applies until a stop is requested; the transaction under way is finished first."""
        mapper = stopping.thread("mapper", lambda: self._map(stopping))
        while not stopping.requested():
            try:
                mapped = self._mapped.get(timeout=0.1)
            except queue.Empty:
                continue
            self._apply(mapped, stopping)
        mapper.join(timeout=60)

    def _map(self, stopping: Stopping) -> None:
        after, known = self._ledger.segment, self._ledger.checkpoint
        while not stopping.requested():
            batch = self._batches.read(after, self._limits.batch_rows, timeout_s=0.2)
            if batch is None:
                continue
            self._step("apply.read")
            next_start = time.monotonic() + self._limits.interval_s
            mapped = _Mapped(batch, self._map_batch(batch, known))
            self._step("apply.mapped")
            after, known = batch.last, batch.checkpoint
            while not stopping.requested():
                try:
                    self._mapped.put(mapped, timeout=0.2)
                    break
                except queue.Full:
                    continue
            stopping.wait(next_start - time.monotonic())

    def _apply(self, mapped: _Mapped, stopping: Stopping) -> None:
        batch = mapped.batch
        if not self._committed(mapped.target, stopping):
            return
        self._step("apply.committed")
        self._batches.release(batch.last)
        self._step("apply.released")
        self._progress.add(
            applied_changes=batch.row_changes,
            applied_transactions=batch.transactions,
            applied_chunk_rows=batch.chunk_rows,
            applied_batches=1,
        )
        if batch.committed_at_us:
            self._progress.committed(batch.committed_at_us)
        self._publish(batch.checkpoint)

    def _committed(self, batch: TargetBatch, stopping: Stopping) -> bool:
        """Applies a batch, trying again while the target can't be reached; False if stopped before it could be."""
        failures = 0
        while not stopping.requested():
            try:
                if failures and self._target.open(self._epoch).segment >= batch.segment:
                    return True  # the connection was lost after the commit
                self._target.apply(batch)
                self._progress.set(note="")
                return True
            except MigratorError as error:
                if not error.retryable:
                    raise
                self._progress.set(note=f"target: {error.what}; trying again")
                stopping.wait(RETRY_WAITS_S[min(failures, len(RETRY_WAITS_S) - 1)])
                failures += 1
        return False

    def _publish(self, checkpoint: Checkpoint) -> None:
        self._progress.set(applied=checkpoint.position, applied_dump_complete=checkpoint.dump_complete())
