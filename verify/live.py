"""Verification under live writes: rounds of source read, wait, target read, compare.

Each round opens a read view of the source (log places L0 before it and L1 after it) and reads it, waits meanwhile
until the ledger has passed L1, and reads ledger and target in one transaction. ``verify.rounds`` says what a
difference then proves.

Soundness rests on three facts. A transaction that a source read view contains has its commit record at or before L1.
The pipeline applies transactions in commit order, whole, and moves the ledger with them (that is what is claimed,
and breaking it shows as a difference). The target's rows and ledger come from one transaction.

The reverse direction, that the source's view contains all that lies before L0, does not hold on engines that log a
commit before it becomes visible. It is not used, except where the ledger stood still through a whole round: there a
transaction would have to be applied before it was visible at the source, and stay invisible until the source was
read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from migrator.errors import VerifyError
from migrator.model.table import TableId
from transforms.registry import TargetMapping
from verify.compare import compare
from verify.mapped_side import canonical_sides, mapping_failure
from verify.pending import PendingAnswer
from verify.rounds import TableProgress
from verify.snapshot import LedgerState, LogPlace, SourceSnapshot, TargetSnapshot
from verify.source_reader import SourceReader

POLL_S = 0.25
_ASK_EVERY_S = 2.0
_TABLES_AT_ONCE = 3
"""Tables compared at a time: a small table mostly waits for the scheduling of its jobs."""

Step = Callable[[str], None]
"""Called at named points, ``source view`` and ``target read``, so that tests can place a write exactly there."""


class TargetReader(Protocol):
    """The target's side."""

    def ledger(self) -> LedgerState | None:
        """The ledger now."""
        ...

    def snapshot(self, tables: Sequence[str], directory: Path) -> TargetSnapshot:
        """Ledger and whole tables from one transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """``wait_s``: longest wait for the ledger per round; ``max_rounds``: at least 3 to settle a live difference."""

    wait_s: float = 60.0
    max_rounds: int = 5


@dataclass(frozen=True, slots=True)
class Round:
    """What one round saw, for the report.

    Attributes:
        number: from 1.
        low: log place before the source read.
        high: log place after it.
        ledger_order: position of the target read.
        ledger_state: its token.
        reached: whether the target stood at or after everything the source read contains.
        still: whether both sides stood at one position.
        detail: how that was found.
        elapsed_s: duration.
    """

    number: int
    low: LogPlace
    high: LogPlace
    ledger_order: int
    ledger_state: str
    reached: bool
    still: bool
    detail: str
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class _Wait:
    reached: bool
    detail: str


@dataclass(frozen=True, slots=True)
class _Reads:
    """What a round read. ``still``: both sides stood at one position."""

    source: SourceSnapshot
    target: TargetSnapshot
    wait: _Wait
    still: bool


@dataclass(frozen=True, slots=True)
class LiveComparison:
    """The two sides, and how to compare them.

    Attributes:
        source: reads the old database.
        target: reads the new one.
        source_schema: schema part of the source tables' identities.
        spark: starts Spark on first use.
        directory: scratch space for snapshots; its content is removed between rounds.
        limits: bounds.
        step: see ``Step``.
    """

    source: SourceReader
    target: TargetReader
    source_schema: str
    spark: Callable[[], SparkSession]
    directory: Path
    limits: Limits
    step: Step = lambda _: None

    def run(
        self, targets: Sequence[TargetMapping]
    ) -> tuple[list[TableProgress], list[Round], SourceSnapshot | None]:
        """Compares until everything is settled or the limits are met; also returns the last source snapshot.

        Raises ``VerifyError``, ``MappingError``, ``ConnectionFailed``.
        """
        tables = [TableProgress(target) for target in targets]
        self._exclude_undumped(tables, self.target.ledger())
        rounds: list[Round] = []
        snapshot: SourceSnapshot | None = None
        while open_tables := [t for t in tables if not t.unknown and (t.rounds == 0 or t.aside_keys)]:
            if len(rounds) >= self.limits.max_rounds:
                break
            done, snapshot = self._round(len(rounds) + 1, open_tables)
            rounds.append(done)
            if not done.reached:
                break
        return tables, rounds, snapshot

    def _exclude_undumped(self, tables: Sequence[TableProgress], ledger: LedgerState | None) -> None:
        for table in tables:
            if ledger is None or ledger.checkpoint is None:
                table.unknown = "the ledger is empty: nothing was applied yet"
                continue
            for name in table.target.sources:
                dump = ledger.checkpoint.dump_of(TableId(self.source_schema, name))
                if dump is None or not dump.done:
                    table.unknown = f"the dump of source table {name} is not complete"

    def _round(self, number: int, tables: Sequence[TableProgress]) -> tuple[Round, SourceSnapshot]:
        started = time.monotonic()
        directory = self.directory / f"round-{number}"
        directory.mkdir(parents=True)
        with ThreadPoolExecutor(_TABLES_AT_ONCE, thread_name_prefix="compare") as pool:
            starting = pool.submit(self.spark)  # takes seconds, while the servers have to be read anyway
            reads = self._read(tables, directory, pool)
            self._exclude_undumped(tables, reads.target.ledger)
            starting.result()
            comparing = [
                pool.submit(self._compare, table, reads, directory / str(index))
                for index, table in enumerate(tables)
                if not table.unknown
            ]
            for each in comparing:
                each.result()
        if number > 1:
            self._forget(number - 1)
        ledger = reads.target.ledger
        done = Round(
            number=number,
            low=reads.source.low,
            high=reads.source.high,
            ledger_order=ledger.order if ledger else 0,
            ledger_state=ledger.token if ledger else "",
            reached=reads.wait.reached,
            still=reads.still,
            detail=reads.wait.detail,
            elapsed_s=time.monotonic() - started,
        )
        return done, reads.source

    def _read(self, tables: Sequence[TableProgress], directory: Path, pool: ThreadPoolExecutor) -> _Reads:
        """Both sides. The target's read view follows the source's as soon as the ledger allows.

        The source's rows are still being read then: the less time lies between the two views, the fewer rows were
        written in between, which this round can't settle.
        """
        before = self.target.ledger()
        names = list(dict.fromkeys(name for table in tables for name in table.target.sources))
        views: Future[LogPlace] = Future()
        reading = pool.submit(self._read_source, names, directory, views)
        high = views.result()
        self.step("source view")
        wait = self._wait(high, names)
        target = self.target.snapshot([table.target.name for table in tables], directory)
        self.step("target read")
        source = reading.result()
        order = target.ledger.order if target.ledger else 0
        still = wait.reached and before is not None and before.order == order
        return _Reads(source, target, wait, still)

    def _read_source(self, names: Sequence[str], directory: Path, views: Future[LogPlace]) -> SourceSnapshot:
        try:
            return self.source.snapshot(names, directory, views.set_result)
        except BaseException as error:
            if not views.done():
                views.set_exception(error)  # or whoever waits for the view would wait for ever
            raise

    def _compare(self, table: TableProgress, reads: _Reads, directory: Path) -> None:
        directory.mkdir()
        rows = reads.target.tables[table.target.name]
        sides, filled = canonical_sides(self.spark(), table.target, reads.source, rows)
        table.columns = filled
        table.uncompared = tuple(c.name for c in rows.columns if c not in filled)
        with mapping_failure(table.target):
            comparison = compare(sides.mapped, sides.target, sides.shape, directory, only=table.aside)
            if table.aside is None and comparison.target_rows != rows.rows:
                raise VerifyError(
                    "the comparison lost rows",
                    where=f"table {rows.name}: {rows.rows} read, {comparison.target_rows} compared",
                    remedy="this is a fault of the tool: report it",
                )
            table.take(comparison, sides, directory, reads.wait.reached, reads.still)

    def _wait(self, upto: LogPlace, tables: Sequence[str]) -> _Wait:
        """Waits until the ledger has passed ``upto``, or nothing of the tables waits in the log before it."""
        deadline = time.monotonic() + self.limits.wait_s
        asked_at = 0.0
        detail = ""
        while True:
            ledger = self.target.ledger()
            if ledger is None:
                return _Wait(False, "the ledger is empty: nothing was applied yet")
            if ledger.order >= upto.order:
                return _Wait(True, "the ledger has passed the source read")
            now = time.monotonic()
            if now - asked_at >= _ASK_EVERY_S:
                asked_at = now
                pending = self.source.pending(ledger, upto, tables)
                detail = pending.detail
                if pending.answer is PendingAnswer.NO:
                    return _Wait(True, pending.detail)
                if pending.stopped:
                    return _Wait(False, f"the pipeline is not running, and {pending.detail}")
            if now >= deadline:
                return _Wait(
                    False, f"the ledger did not reach the source read in {self.limits.wait_s:g} s; {detail}"
                )
            time.sleep(POLL_S)

    def _forget(self, number: int) -> None:
        """Removes a past round's bulk; what it settled and set aside is still needed."""
        for path in (self.directory / f"round-{number}").glob("*.parquet"):
            path.unlink()
