"""One seeded run: engine, chunk reader, log reader and capture core interleaved at random, with crashes.

The history that comes out is judged by ``check``; the judge knows only the log and the deliveries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from migrator.core.capture import Capture, EmitChunk, EmitPart, Output
from migrator.core.dump import DumpPlan
from migrator.model.chunk import Chunk, ChunkRequest
from migrator.model.event import Key, LogRecord, MarkKind
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableSchema
from tests.simulation.engine import SCHEMA, TABLE, Engine, SeenSet, position

KEYS = [f"k{number}" for number in range(8)]


@dataclass(frozen=True)
class Setup:
    """What is simulated; the mutants of the tests are made by replacing parts of it."""

    ordered: bool = False
    watermarks: bool = False
    witness: bool = True
    low_after_select: bool = False
    crashes: bool = True
    part_rows: int = 2
    max_keys: int = 20_000
    capture: type[Capture] = Capture


@dataclass
class History:
    """Deliveries in order: (key, value or None, origin). ``dropped`` counts chunk rows that reconciliation took."""

    engine: Engine
    deliveries: list[tuple[str, str | None, str]] = field(default_factory=list)
    log_versions: list[tuple[int, int]] = field(default_factory=list)
    dropped: int = 0
    crashes: int = 0
    complete: bool = False


def drop_keys(_: TableSchema, rows: Any, keys: frozenset[Key]) -> tuple[Any, int]:
    kept = [row for row in rows if (row[0],) not in keys]
    return kept, len(kept)


class Run:
    """One seed's run. Every actor advances one step at a time, chosen by the seed."""

    def __init__(self, seed: int, setup: Setup):
        self.rng = random.Random(seed)
        self.setup = setup
        self.engine = Engine(self.rng, KEYS, setup.ordered)
        self.engine.seed_rows()
        self.history = History(self.engine)
        self.durable = Checkpoint(position(0), dumps=(TableDump(TABLE),))
        self.attempt = 0
        self.pending: list[Output] = []
        self._start()

    def _start(self) -> None:
        self.attempt += 1
        prefix = f"{self.attempt}-" if self.setup.watermarks else ""
        plan = DumpPlan(self.durable.dumps, 3, max_waiting=2, token_prefix=prefix)
        setup = self.setup
        self.capture = setup.capture(
            self.durable, {TABLE: SCHEMA}, plan, drop_keys, setup.max_keys, has_witness=setup.witness
        )
        self.read = self.durable.position.order
        self.records: list[LogRecord] = []
        self.reader: Iterator[None] | None = None
        self.polled: SeenSet | None = None
        self.pending = []

    def go(self, steps: int = 220) -> History:
        for _ in range(steps):
            self._step(writing=True)
        while self.engine.hidden or not self.history.complete:
            self._step(writing=False)
        return self.history

    def _step(self, writing: bool) -> None:
        actions: list[Callable[[], object]] = [
            self._deliver,
            self._deliver,
            self._chunk,
            self._chunk,
            self._witness,
        ]
        actions += [self.engine.reveal, self._flush]
        if writing:
            actions += [self.engine.write, self.engine.write]
            if self.setup.crashes and self.rng.random() < 0.02:
                actions = [self._crash]
        self.rng.choice(actions)()
        caught_up = self.read == len(self.engine.log) and not self.records and not self.engine.hidden
        self.history.complete = not writing and caught_up and self._all_dumped() and not self.pending

    def _all_dumped(self) -> bool:
        return self.durable.dump_complete() and self.durable.position.order == len(self.engine.log)

    # -- actors -------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        if not self.records and self.read < len(self.engine.log):
            self.records = self.engine.log[self.read].records(self.setup.part_rows)
            self.read += 1
        if self.records:
            self.pending += self.capture.on_record(self.records.pop(0))

    def _chunk(self) -> None:
        if self.reader is None:
            request = self.capture.next_request()
            if request is not None:
                self.reader = self._read(request)
        elif next(self.reader, "end") == "end":
            self.reader = None

    def _read(self, request: ChunkRequest) -> Iterator[None]:
        """A chunk read in as many steps as the real one has: low mark, SELECT, high mark, hand over."""
        if request.token and not self.setup.low_after_select:
            self.engine.mark(request.token, MarkKind.LOW)
            yield
        chunk: Chunk = self.engine.select(request)
        yield
        if request.token:
            if self.setup.low_after_select:
                self.engine.mark(request.token, MarkKind.LOW)
                yield
            self.engine.mark(request.token, MarkKind.HIGH)
            yield
        if not self.setup.witness:
            chunk = replace(chunk, witness=None)
        self.pending += self.capture.on_chunk(chunk)

    def _witness(self) -> None:
        if self.polled is None:
            self.polled = SeenSet(frozenset(self.engine.visible_ids))
        else:  # the answer may arrive long after the snapshot was taken
            self.capture.on_witness(self.polled if self.setup.witness else None)
            self.polled = None

    def _flush(self) -> None:
        """A segment becomes durable: what was output, together with the checkpoint."""
        for output in self.pending:
            if isinstance(output, EmitPart):
                for index, change in enumerate(output.part.changes, output.part.first_index):
                    self.history.log_versions.append((output.part.position.order, index))
                    image = change.after or change.before or ("", None)
                    value = str(change.after[1]) if change.after else None
                    self.history.deliveries.append(
                        (str(image[0]), value, f"log {output.part.position.order}")
                    )
            elif isinstance(output, EmitChunk):
                self.history.dropped += output.chunk.row_count - output.kept_rows
                self.history.deliveries += [(key, value, "chunk") for key, value in output.rows]
        self.pending = []
        self.durable = self.capture.checkpoint()

    def _crash(self) -> None:
        self.history.crashes += 1
        self._start()


def check(history: History) -> list[str]:
    """Violations: time travel per key (D1), and the final state (D7), judged from the log alone."""
    versions = {("0", key): 0 for key in KEYS}
    deletes: dict[str, list[int]] = {key: [] for key in KEYS}
    for commit in history.engine.log:
        for key, value in commit.rows.items():
            if value is None:
                deletes[key].append(commit.order)
            else:
                versions[(value, key)] = commit.order
    problems, seen, state = [], dict.fromkeys(KEYS, 0), {}
    for key, value, origin in history.deliveries:
        version = int(origin.split()[1]) if origin.startswith("log") else versions[(str(value), key)]
        if version < seen[key]:
            problems.append(f"{key}: version {version} from {origin} after version {seen[key]}")
        seen[key] = max(seen[key], version)
        state[key] = value
    if any(later <= earlier for earlier, later in pairwise(history.log_versions)):
        problems.append("a log event was delivered twice or out of order")
    final = {key: value for key, value in state.items() if value is not None}
    if final != history.engine.visible:
        problems.append(f"final state {final} instead of {history.engine.visible}")
    return problems
