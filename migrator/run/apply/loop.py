"""Event log -> Spark mapping -> one target transaction a batch."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from migrator.errors import DamageError, MigratorError
from migrator.model.ledger import Ledger
from migrator.model.limits import ApplyLimits
from migrator.model.lineage import due
from migrator.model.observed.observation import COMMIT, MAP
from migrator.model.progress import Checkpoint, Filling
from migrator.ports.eventlog import Batch, BatchReader
from migrator.ports.mirror import Mirror
from migrator.ports.target import Target, TargetBatch, TargetRows
from migrator.run.apply.read_ahead import ReadAhead
from migrator.run.capture.source_threads import wait
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from migrator.run.steps import Step, no_step

_LOOK_S = 0.05
_REST_S = 0.1
_LISTEN_S = 0.2
MapBatch = Callable[[Batch, Checkpoint | None], TargetBatch]


@dataclass(frozen=True, slots=True)
class Mapped:
    """A batch and its target rows."""

    batch: Batch
    target: TargetBatch


@dataclass(frozen=True, slots=True)
class OpenedTarget:
    """A target opened by a leader.

    Attributes:
        target: where batches go.
        ledger: what it holds.
        epoch: the leader's.
    """

    target: Target
    ledger: Ledger
    epoch: int


class Fills(Protocol):
    """Joined targets that are filled piece by piece between batches."""

    @property
    def filling(self) -> tuple[Filling, ...]:
        """The targets under way, as the last transaction that was tried left them."""
        ...

    def piece(self, mirror: Mirror) -> Iterator[TargetRows]:
        """The rows of the next piece of each."""
        ...


class ApplyLoop:
    """Maps and applies batches; mapping runs ahead of the target transaction, where that saves time.

    Running ahead is safe: a mapping sees only the rows of its batch, and batches are applied in order. While a joined
    target is being filled, a piece of it follows each batch, and pieces follow each other while no batch waits.

    Args:
        batches: the event log.
        map_batch: the mapping.
        opened: the target, under this leader's epoch.
        progress: where counters go.
        step: hook at named points.
        fills: the joined targets; None if there are none.
    """

    def __init__(
        self,
        batches: BatchReader,
        map_batch: MapBatch,
        opened: OpenedTarget,
        progress: Progress,
        limits: ApplyLimits,
        step: Step = no_step,
        fills: Fills | None = None,
    ):
        self._batches = batches
        self._map_batch = map_batch
        self._target, self._epoch = opened.target, opened.epoch
        self._progress = progress
        self._limits = limits
        self._step = step
        ledger = opened.ledger
        self._after, self._known = ledger.segment, ledger.checkpoint
        self._ahead: deque[Mapped] = deque()
        self._reads = ReadAhead(progress.clock)
        self._failures = 0
        self._fills = fills
        self._filling = () if ledger.checkpoint is None else ledger.checkpoint.filling
        if ledger.checkpoint is not None:
            self._publish(ledger.checkpoint)

    def run(self, stopping: Stopping) -> None:
        """Applies until a stop is requested; the transaction under way is finished first."""
        mapped: queue.Queue[Mapped] = queue.Queue(maxsize=1)
        mapper = stopping.thread("mapper", lambda: self._map(mapped, stopping))
        while not stopping.requested():
            try:
                batch = mapped.get(timeout=0.0 if self.filling() else _REST_S)
            except queue.Empty:
                self._fill(stopping)
                continue
            with self._reads.applying():
                while not stopping.requested() and not self.apply(batch):
                    wait(self._failures - 1, stopping)
            mapped.task_done()
            self._fill(stopping)  # also beside a stream that never rests
        mapper.join(timeout=60)

    def finish(self) -> None:
        """Applies what is left in the event log, once capture and ``run`` have ended.

        Capture may have stored (and told the source so) a little more than the target held when the stop came. At
        rest such a source can't be told from one whose log lost what the target lacks.
        """
        while self._ahead or self.map_next() is not None:
            if not self.apply(self._ahead[0]):
                return  # the next run applies it

    def _fill(self, stopping: Stopping) -> None:
        while not stopping.requested() and self.filling() and not self.fill():
            wait(self._failures - 1, stopping)

    def _map(self, mapped: queue.Queue[Mapped], stopping: Stopping) -> None:
        clock = self._progress.clock
        while not stopping.requested():
            self._reads.wait(stopping)
            began_s = clock()
            try:
                batch = self._read(0.0)
                if batch is None:
                    batch = self._read(_LISTEN_S)
                    began_s = clock()  # waiting for changes isn't work
            except DamageError:
                # What is mapped already goes into the target first: it needn't be captured again.
                while mapped.unfinished_tasks and not stopping.wait(_LOOK_S):
                    pass
                raise
            if batch is None:
                continue
            next_start = time.monotonic() + self._limits.interval_s
            done = self.map(batch)
            self._reads.mapped(clock() - began_s)
            while not stopping.requested():
                try:
                    mapped.put(done, timeout=0.2)
                    break
                except queue.Full:
                    continue
            stopping.wait(next_start - time.monotonic())

    # -- steps: the threads above call them, and so does the simulation without threads -------------------------

    def map_next(self) -> Mapped | None:
        """Maps the batch after the last mapped one; None when the event log holds no more now."""
        batch = self._read(0.0)
        return None if batch is None else self.map(batch)

    def _read(self, timeout_s: float) -> Batch | None:
        return self._batches.read(self._after, self._limits.batch_rows, timeout_s=timeout_s)

    def map(self, batch: Batch) -> Mapped:
        """Maps a batch. Raises what the mapping raises."""
        self._step("apply.read")
        with self._progress.taking(MAP, batch.last):
            mapped = Mapped(batch, self._map_batch(batch, self._known))
        self._step("apply.mapped")
        self._after, self._known = batch.last, batch.checkpoint
        self._ahead.append(mapped)
        return mapped

    def filling(self) -> bool:
        """Tells whether a joined target is being filled piece by piece."""
        return self._fills is not None and bool(self._filling)

    def fill(self) -> bool:
        """One attempt to bring the next piece into the target; False when the target can't be reached now."""
        fills = self._fills
        if fills is None or not self._reached(lambda: self._piece(fills)):
            return fills is None
        self._filling = fills.filling
        self._progress.count("batches", {("fill",): 1})
        self._step("fill.committed")
        self._progress.set(filling=self._filling, note="; ".join(map(_in_words, self._filling)))
        return True

    def apply(self, mapped: Mapped) -> bool:
        """One attempt to bring a batch into the target; False when the target can't be reached now."""
        if not self._reached(lambda: self._commit(mapped.target), mapped.batch.last):
            return False
        if self._fills is not None:
            self._filling = self._fills.filling
        self._step("apply.committed")
        self._finish(mapped.batch)
        return True

    def _reached(self, work: Callable[[], None], segment: int = 0) -> bool:
        """Does something with the target; False when it can't be reached now."""
        try:
            with self._progress.taking(COMMIT, segment):
                work()
        except MigratorError as error:
            if not error.retryable:
                raise
            self._progress.met(error)
            self._progress.set(note=f"target: {error.what}; trying again")
            self._failures += 1
            return False
        self._failures = 0
        return True

    def _piece(self, fills: Fills) -> None:
        if self._failures:
            self._target.open(self._epoch)
        self._target.fill(fills.piece)

    def _commit(self, batch: TargetBatch) -> None:
        if self._failures and not due(self._target.open(self._epoch), batch.segment, batch.link):
            return  # the connection was lost after the commit
        self._target.apply(batch)
        self._progress.set(note="")

    def _finish(self, batch: Batch) -> None:
        self._ahead.popleft()
        self._batches.release(batch.last)
        self._step("apply.released")
        self._progress.add(
            applied_changes=0 if batch.echo else batch.row_changes,
            applied_transactions=batch.transactions,
            applied_chunk_rows=batch.chunk_rows,
            applied_batches=1,
        )
        self._progress.count("batches", {("dump" if batch.chunk_rows else "stream",): 1})
        if batch.committed_at_us:
            self._progress.committed(batch.committed_at_us)
        self._progress.set(applied_segment=batch.last)
        self._publish(batch.checkpoint)

    def _publish(self, checkpoint: Checkpoint) -> None:
        self._progress.set(
            applied=checkpoint.position,
            applied_dump_complete=checkpoint.dump_complete(),
            applied_dumps=checkpoint.dumps,
            applied_requests=checkpoint.requests,
            filling=self._filling,
        )


def _in_words(filling: Filling) -> str:
    done = f"{filling.rows:,} of about {filling.of_rows:,} rows"
    return f"filling {filling.target}: {done} in {filling.pieces} pieces"
