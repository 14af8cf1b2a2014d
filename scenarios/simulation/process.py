"""One ``migrator run``, its threads as steps that a decision may call at any time.

Everything in it is the product's own: leadership, ledger, event log, pumps, core, segment builder, netting, apply
loop. The connections are the models', the threads are absent, and waiting for a clock is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrator.adapters.memory.eventlog import MemoryBatchReader, MemoryEventLog, MemorySegmentWriter
from migrator.adapters.memory.leadership import MemoryElection, MemoryLeadership
from migrator.adapters.memory.requests import MemoryRequests
from migrator.adapters.memory.target import Commit, MemoryDatabase, MemoryTarget
from migrator.errors import ConnectionFailed
from migrator.model.chunk import ChunkRequest
from migrator.model.ledger import Ledger
from migrator.model.limits import ApplyLimits, CaptureLimits
from migrator.model.progress import TableIdentity
from migrator.model.table import TableSchema
from migrator.run.apply.loop import ApplyLoop, Mapped, OpenedTarget
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.fair_inputs import FairInputs
from migrator.run.capture.inputs import Inputs
from migrator.run.capture.source_threads import ChunkPump
from migrator.run.capture.steps import CaptureSteps, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.lead.between import refuse_changes
from migrator.run.lead.carried import Carried, LateTargets, carry_over
from migrator.run.lead.resume import resume
from migrator.run.progress import Progress
from scenarios.simulation.dice import Dice
from scenarios.simulation.setup import Setup, edited, mapping_of
from scenarios.simulation.source import (
    Link,
    SimulatedChunkReader,
    SimulatedLogReader,
    SimulatedWatermarks,
    Source,
)
from scenarios.simulation.tables import SCHEMAS, Mapper, analysed, noted

_AHEAD = 3
"""Batches that may be mapped and not applied: one in the target's hands, one in the queue, one before it."""
CRASH_POINTS = (
    "capture.chunk",
    "capture.emitted",
    "capture.segment",
    "segment.data",
    "segment.synced",
    "segment.created",
    "capture.appended",
    "apply.mapped",
    "target.merged",
    "target.committed",
    "apply.committed",
    "apply.released",
)
LED = "run.led"
STARTING = (LED, "log.connected")
"""The points that a process comes to before its loops run."""
ALL_POINTS = (
    *CRASH_POINTS,
    *STARTING,
    "log.records",
    "log.acknowledge",
    "log.acknowledged",
    "chunk.begin",
    "chunk.low",
    "chunk.snapshot",
    "chunk.selected",
    "chunk.high",
    "capture.requested",
    "apply.read",
)
"""Every point that a simulated process comes to. Tests place kills at each, random ones come at ``CRASH_POINTS``."""
LOST, UNKNOWN = "target.merged", "target.committed"
"""The points where the connection to the target may break: before a COMMIT, or before its answer arrives."""


class Crash(BaseException):
    """The process is gone at this point; like SIGKILL it can't be caught by the product."""


@dataclass(slots=True)
class Shared:
    """The objects that outlive processes."""

    source: Source
    election: MemoryElection
    event_log: MemoryEventLog
    target: MemoryDatabase
    requests: MemoryRequests

    def holds_rows(self, name: str) -> bool:
        """Returns whether a target table has any row."""
        return any(rows for table, rows in self.target.rows.items() if table.name == name)

    def identities(self, names: Sequence[str]) -> dict[str, TableIdentity]:
        """Returns which table each target is."""
        return {name: TableIdentity(str(self.target.remakes.get(name, 0)), "ledger") for name in names}

    def make_again(self, name: str) -> None:
        """Somebody drops a target table and makes it again, of the same shape; nothing of the ledger changes."""
        self.target.remakes[name] = self.target.remakes.get(name, 0) + 1
        self.empty(name)

    def empty(self, name: str) -> None:
        """Empties a target table, as an operator does; nothing of the ledger changes."""
        database = self.target
        ledger = database.ledger
        for table, rows in database.rows.items():
            if table.name == name and ledger.checkpoint is not None:
                gone = {table: dict.fromkeys(rows)}
                database.history.append(Commit(ledger.epoch, ledger.segment, ledger.checkpoint, gone))
                rows.clear()


@dataclass(slots=True)
class Fault:
    """A fault that waits for its point: ``fired`` once it was reached."""

    name: str
    point: str
    fired_us: int | None = None


class Process:
    """A process slot: off, starting, or leading.

    Args:
        name: of the owner of its leases.
        shared: what it works on.
        setup: what is simulated.
    """

    def __init__(self, name: str, shared: Shared, setup: Setup):
        self.name = name
        self._shared = shared
        self._written = self._setup = setup
        self._versions = mapping_of(setup, 0)
        self._attempt = 0
        self.stop()

    # -- life ---------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Returns whether there is a process."""
        return self.leads or self._starting is not None

    @property
    def leads(self) -> bool:
        """Returns whether the process's loops run. It may be a zombie: only the ledger and the event log know."""
        return self._apply is not None

    def stop(self) -> None:
        """The process is gone, with everything it held in memory; its lease is not."""
        self.leadership = MemoryLeadership(self._shared.election, self.name)
        self.awaited: list[Fault] = []
        self._starting: Iterator[None] | None = None
        self._capture: CaptureSteps | None = None
        self._apply: ApplyLoop | None = None
        self._requests: dict[ChunkPump, tuple[ChunkRequest, TableSchema]] = {}
        self._reading: dict[ChunkPump, Iterator[None]] = {}
        self._polling: Iterator[None] | None = None
        self._mapped: deque[Mapped] = deque()
        self._stopping = Stopping()
        self.link = self._linked()

    def _linked(self) -> Link:
        return Link(self._shared.source, self._setup.part_rows, self._setup.witness, self.step)

    def lead(self, number: int = 0) -> None:
        """The next step on the way to leading; ``number``: which settings a start has, if they are edited.

        Raises ``FencedError`` where another process leads.
        """
        if self.leads:
            return
        if self._starting is None:
            self._setup, self._versions = edited(self._written, number), mapping_of(self._written, number)
            self.link = self._linked()
            self._starting = self._start()
        if next(self._starting, "done") == "done":
            self._starting = None

    def _start(self) -> Iterator[None]:
        """``migrator.run.migration.Migration`` without Spark: lead, agree, run."""
        shared, setup = self._shared, self._setup
        lease = self.leadership.acquire(shared.target.ledger.epoch)
        shared.source.notes.append(f"{self.name}: leads under epoch {lease.epoch}")
        self._attempt += 1
        yield
        target = MemoryTarget(shared.target, step=self.step)
        ledger = target.open(lease.epoch)
        self.step(LED)
        yield
        after, applied = ledger.segment, ledger.segment_id
        writer = MemorySegmentWriter(
            shared.event_log, lease.epoch, after=after, applied=applied, step=self.step
        )
        reader = MemoryBatchReader(shared.event_log)
        checkpoint = resume(ledger, writer.last(), reader)
        if checkpoint is not None:
            refuse_changes(checkpoint, list(SCHEMAS.values()), shared.requests.read())
        carried = self._carried(ledger)
        yield
        progress = Progress()
        inputs: Inputs = FairInputs(maxsize=16)
        limits = CaptureLimits(
            chunk_rows=setup.chunk_rows,
            chunk_rows_min=setup.chunk_rows,
            chunk_rows_max=setup.chunk_rows,
            dump_workers=setup.workers[0],
        )
        self._capture = CaptureSteps(
            SourcePorts(
                lambda: SimulatedLogReader(self.link),
                lambda: SimulatedChunkReader(self.link),
                (lambda: SimulatedWatermarks(self.link)) if setup.watermarks else None,
                has_witness=setup.witness,
            ),
            Attempt(
                SCHEMAS,
                checkpoint,
                limits,
                f"{lease.epoch}-{self.name}{self._attempt}",
                max_keys=setup.max_keys,
            ),
            writer,
            shared.requests,
            inputs,
            progress,
            self.step,
        )
        yield
        mapper = Mapper(shared.event_log, self._versions)
        self._apply = ApplyLoop(
            reader,
            lambda batch, known: carried.noted(mapper.map(batch, known)),
            OpenedTarget(target, ledger, lease.epoch),
            progress,
            ApplyLimits(batch_rows=12),
            self.step,
        )

    def _carried(self, ledger: Ledger) -> Carried:
        shared = self._shared
        late = LateTargets(
            shared.holds_rows, lambda _: False, identities=shared.identities, identity_stays=True
        )
        plans, mapped = analysed(self._versions), noted(self._versions, late.identities([*self._versions]))
        return carry_over(ledger.checkpoint, self._shared.requests.read, plans, late, mapped)

    def step(self, name: str) -> None:
        """The hook of every named point. Raises ``Crash`` or ``ConnectionFailed`` where a fault waits for it."""
        self._shared.source.notes.append(f"{self.name}: {name}")
        for fault in self.awaited:
            if fault.point == name:
                self.awaited.remove(fault)
                fault.fired_us = self._shared.source.clock_us
                if fault.name == "crash":
                    raise Crash
                raise ConnectionFailed("the connection to the target was lost", where=name, retryable=True)

    # -- steps; each does nothing when it has nothing to do -----------------------------------------------------

    def read_log(self, dice: Dice) -> None:
        """The log's thread: one read, handed over."""
        if self._capture is None or self._capture.inputs.full():
            return
        self.link.records = 1 + dice.below(3)
        try:
            self._capture.log.read_once(self._stopping)
        except ConnectionFailed as error:
            self._capture.log.disconnected(error)

    def read_chunk(self, dice: Dice) -> None:
        """A worker's thread: up to the next place where another thread may come in between."""
        if self._capture is None or self._capture.inputs.full():
            return
        able = [pump for pump in self._capture.chunks if pump in self._reading or pump.asked()]
        if not able:
            return
        pump = dice.one_of(able)
        reading = self._reading.get(pump) or self._read(pump)
        self._reading[pump] = reading
        try:
            if next(reading, "done") == "done":
                del self._reading[pump], self._requests[pump]
        except ConnectionFailed as error:
            pump.disconnected(error)
            self._reading[pump] = self._read(pump)

    def _read(self, pump: ChunkPump) -> Iterator[None]:
        if pump not in self._requests:
            self._requests[pump] = pump.take()
        return pump.reading(*self._requests[pump], self._stopping)

    def poll(self, _: Dice) -> None:
        """The witnesses' thread: takes one, or hands it over, however old it is by then."""
        if self._capture is None or self._capture.inputs.full():
            return
        if self._polling is None:
            self._polling = self._capture.witnesses.polling(self._stopping)
        try:
            if next(self._polling, "done") == "done":
                self._polling = None
        except ConnectionFailed as error:
            self._capture.witnesses.disconnected(error)
            self._polling = None

    def take(self, dice: Dice) -> None:
        """The capture loop: asks for chunks and takes some inputs."""
        if self._capture is None:
            return
        for _ in range(1 + dice.below(3)):
            self._capture.ask()
            if self._capture.inputs.empty():
                return
            self._capture.take(self._capture.inputs.get_nowait())

    def write(self, _: Dice) -> None:
        """The capture loop: writes the pending segment."""
        if self._capture is not None and self._capture.due(age_s=1e9):
            self._capture.write()

    def look(self, _: Dice) -> None:
        """The dump requests' thread: one look at the store."""
        if self._capture is not None and not self._capture.inputs.full():
            self._capture.requests.look(self._stopping)

    def map(self, _: Dice) -> None:
        """The mapper's thread: one batch."""
        if self._apply is None or len(self._mapped) >= _AHEAD:
            return
        mapped = self._apply.map_next()
        if mapped is not None:
            self._mapped.append(mapped)

    def commit(self, _: Dice) -> None:
        """The apply loop: one attempt."""
        if self._apply is not None and self._mapped and self._apply.apply(self._mapped[0]):
            self._mapped.popleft()

    def watch(self, _: Dice) -> None:
        """The watch thread: a lost lease stops the process."""
        if self.leads and not self.leadership.held():
            self.stop()
