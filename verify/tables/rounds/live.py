"""Verification under live writes: rounds of source read, wait, target read, compare.

Each round of a table opens a read view of the source (log places L0 before it and L1 after it) and reads it, waits
meanwhile until the ledger has passed L1, and reads ledger and target in one transaction.
``verify.tables.rounds.progress`` decides which differences are proved then.

No view is held longer than the read of a chunk, unless the user asks for that (``--whole``): a round reads a table
piece by piece where it can, with two views for each piece (``verify.tables.sweeps.chunk_sweep``).
``verify.tables.rounds.table_reads`` reads all other tables.

Soundness rests on three facts. A transaction that a source read view contains has its commit record at or
before L1. The pipeline applies transactions in commit order, whole, and moves the ledger with them (that is
the claim under test, and a breach shows as a difference). The target's rows and ledger come from one
transaction.

The reverse direction, that the source's view contains all that lies before L0, does not hold on engines that log a
commit before it becomes visible. It is not used, except where the ledger stood still through a whole round: there a
transaction would have to be applied before it was visible at the source, and stay invisible until the source was
read.

The work ends: a wait by ``Limits.wait_s``, the rounds by ``Limits.max_rounds``, and all of it by the time that
``Watch`` gives. When that is up, nothing further is read; what was read is compared, and every key that it doesn't
settle stays set aside.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import uniform
from shutil import rmtree

from pyspark.sql import SparkSession

from migrator.errors import VerifyError
from migrator.model.table import TableId
from transforms.registry import TargetMapping
from verify.readers.pending import PendingAnswer
from verify.readers.snapshot import LedgerState, LogPlace, SourceSnapshot
from verify.readers.source import SourceReader
from verify.tables.compare.compare import compare
from verify.tables.compare.mapped_side import canonical_sides, mapping_failure, stored_sides
from verify.tables.compare.spark_failure import from_spark
from verify.tables.rounds.chunked import ChunkReads, read_chunks
from verify.tables.rounds.named_keys import NamedKeys, of_named_keys
from verify.tables.rounds.progress import TableProgress
from verify.tables.rounds.table_reads import Group, Reads, TableReads, TargetReader
from verify.tables.rounds.watch import Watch
from verify.tables.sweeps.chunk_sweep import CHUNK_ROWS
from verify.tables.sweeps.lanes import LANES
from verify.tables.sweeps.pairing import TimeIsUp, Wait, Waited

POLL_S = 0.25
MAX_ROUNDS = 20
_REST_S = 0.5
"""The longest rest between two rounds, of random length: else each round could meet a regular writer at the same
place."""
_ASK_EVERY_S = 2.0
_TABLES_AT_ONCE = 3
"""Tables compared at a time: a small table mostly waits for the scheduling of its jobs."""

Step = Callable[[str], None]
"""Called at named points (``verify.tables.sweeps.pairing``), so that tests can place a write exactly there."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a verification.

    Attributes:
        wait_s: longest wait for the ledger.
        max_rounds: at least ``STEADY_ROUNDS`` to settle a live difference.
        chunk_rows: source rows in a piece; 0 compares one snapshot of each side instead.
        lanes: the most lanes of a large table, see ``verify.tables.sweeps.lanes``.
        at_rest: whether the caller has seen to it that nobody can write, and that everything is applied: then nothing
            is waited for.
    """

    wait_s: float = 60.0
    max_rounds: int = MAX_ROUNDS
    chunk_rows: int = CHUNK_ROWS
    lanes: int = LANES
    at_rest: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """The facts of one round, for the report.

    Attributes:
        number: from 1.
        low: log place before the source read.
        high: log place after it.
        ledger_order: position of the target read.
        ledger_state: its token.
        reached: whether the target stood at or after everything the source read contains.
        still: whether both sides stood at one position.
        detail: how ``reached`` was found.
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
class LiveComparison:
    """A comparison of two sides in rounds.

    Attributes:
        source: reads the old database.
        target: reads the new one.
        source_schema: schema part of the source tables' identities.
        kinds: engines of source and target (``verify.readers.engines.JUDGED``).
        spark: starts Spark on first use.
        directory: scratch space for snapshots; its content is removed between rounds.
        limits: its limits.
        step: see ``Step``.
        watch: the time that it has.
        in_vain: positions at which the ledger stood through a whole wait: while it stands there, no table waits
            again.
    """

    source: SourceReader
    target: TargetReader
    source_schema: str
    kinds: tuple[str, str]
    spark: Callable[[], SparkSession]
    directory: Path
    limits: Limits
    step: Step = lambda _: None
    watch: Watch = field(default_factory=Watch)
    in_vain: set[int] = field(default_factory=set)

    def run(
        self, targets: Sequence[TargetMapping], named: NamedKeys | None = None
    ) -> tuple[list[TableProgress], list[Round], SourceSnapshot | None]:
        """Compares until everything is settled or the limits are met; also returns the last source snapshot.

        Where the time was up, ``late`` of each table that isn't settled says how both sides stood then.
        ``named``: the keys to compare; None: all.

        Raises ``VerifyError``, ``MappingError``, ``ConnectionFailed``.
        """
        tables = [self._begun(target, named) for target in targets]
        self._exclude_undumped(tables, self.target.ledger())
        rounds: list[Round] = []
        snapshot: SourceSnapshot | None = None
        while open_tables := [table for table in tables if table.open]:
            if len(rounds) >= self.limits.max_rounds or self.watch.over():
                break
            if rounds:
                self.watch.sleep(uniform(0, min(_REST_S, rounds[-1].elapsed_s)))
            self.watch.begins(len(rounds) + 1, tables)
            done, snapshot = self._round(len(rounds) + 1, open_tables)
            rounds.append(done)
            if not done.reached:
                break
        self._late(tables)
        return tables, rounds, snapshot

    def _begun(self, target: TargetMapping, named: NamedKeys | None) -> TableProgress:
        if named is None:
            return TableProgress(target)
        return of_named_keys(self.spark(), target, named.tables[target.name], self.source, self.target)

    def _late(self, tables: Sequence[TableProgress]) -> None:
        """Notes how both sides stand, for those tables that aren't settled although the time is up."""
        late = [table for table in tables if table.open]
        if not late or not self.watch.over():
            return
        ledger, place = self.target.ledger(), self.source.position()
        stood = (ledger.token or str(ledger.order)) if ledger else "no position"
        for table in late:
            table.late = (
                f"{self.watch.ended()}: the target stood at {stood}, the source's log at"
                f" {place.state or place.order}"
            )

    def _exclude_undumped(self, tables: Sequence[TableProgress], ledger: LedgerState | None) -> None:
        for table in tables:
            if ledger is None or ledger.checkpoint is None:
                table.unknown = "the ledger is empty: nothing was applied yet"
                continue
            table.names_aside(ledger.checkpoint.bad_rows)
            for name in table.target.sources:
                dump = ledger.checkpoint.dump_of(TableId(self.source_schema, name))
                if dump is None or not dump.done:
                    table.unknown = f"the dump of source table {name} is not complete"
            for filling in ledger.checkpoint.filling:
                if filling.target == table.target.name:
                    table.unknown = (
                        f"it is being filled: {filling.rows} of about {filling.of_rows} rows of its grains'"
                        " tables are covered, the others have no rows in it yet"
                    )

    def _round(self, number: int, tables: Sequence[TableProgress]) -> tuple[Round, SourceSnapshot]:
        started = time.monotonic()
        directory = self.directory / f"round-{number}"
        directory.mkdir(parents=True)
        with ThreadPoolExecutor(_TABLES_AT_ONCE, thread_name_prefix="compare") as pool:
            starting = pool.submit(self.spark)  # takes seconds, while the servers have to be read anyway
            others = self._others(pool, starting.result)
            reads = self._reads(tables, directory, others)
            for own, group in reads:
                self._exclude_undumped(group, own.target.ledger)
            starting.result()
            read = [(table, own) for own, group in reads for table in group if not table.unknown]
            comparing = [
                pool.submit(self._compare, table, own, directory / f"compared-{n}")
                for n, (table, own) in enumerate(read)
            ]
            for comparison in comparing:
                comparison.result()
            looks = [
                others.look(table, own, directory / f"looked-{n}")
                for n, (table, own) in enumerate(read)
                if own.swept
            ]
        if number > 1 and not self.watch.over():  # samples of what wasn't read again need the rows
            self._forget(number - 1)
        seen = [own for own, _ in reads] + [look for look in looks if look is not None]
        return self._seen(number, seen, time.monotonic() - started)

    def _others(self, pool: ThreadPoolExecutor, spark: Callable[[], SparkSession]) -> TableReads:
        rows, kinds = self.limits.chunk_rows, self.kinds
        return TableReads(
            self.source, self.target, kinds, spark, rows, self._wait_for, self.step, pool, self.watch
        )

    def _reads(self, tables: Sequence[TableProgress], directory: Path, others: TableReads) -> list[Group]:
        reads: list[Group] = []
        apart: list[TableProgress] = []
        for index, table in enumerate(tables):
            with suppress(TimeIsUp):
                self._check(table.target.name)
                chunked = self._read_chunks(table, directory / str(index), others.spark)
                if chunked is None:
                    apart.append(table)
                else:
                    reads.append((chunked, [table]))
                    self.watch.read += 1
        return [*reads, *others.read(apart, directory)] or [others.nothing()]

    @staticmethod
    def _seen(number: int, reads: Sequence[Reads], elapsed_s: float) -> tuple[Round, SourceSnapshot]:
        """Returns the round for the report, and all its reads of the source."""
        last = reads[-1]
        late = next((read for read in reads if not read.wait.reached), last)
        ledger = last.target.ledger
        tables = {name: table for read in reads for name, table in read.source.tables.items()}
        low = min((read.source.low for read in reads), key=lambda place: place.order)
        high = max((read.source.high for read in reads), key=lambda place: place.order)
        done = Round(
            number=number,
            low=low,
            high=high,
            ledger_order=ledger.order if ledger else 0,
            ledger_state=ledger.token if ledger else "",
            reached=late.wait.reached,
            still=all(read.still for read in reads),
            detail=late.wait.detail,
            elapsed_s=elapsed_s,
        )
        return done, SourceSnapshot(low, high, tables)

    def _read_chunks(
        self, table: TableProgress, directory: Path, spark: Callable[[], SparkSession]
    ) -> Reads | None:
        """Reads a table piece by piece; returns None where it has to be read whole."""
        if table.apart:
            return None
        rows, wait = self.limits.chunk_rows, self._wait_for(table.target.sources)
        reads: ChunkReads | str = "asked for"
        if rows:
            lanes = self.limits.lanes
            reads = read_chunks(self, table, directory, wait, self._stepped, rows, spark, lanes)
        if isinstance(reads, str):
            table.apart = reads
            return None
        swept = reads.swept
        orders = {ledger.order if ledger else None for ledger in (reads.before, swept.ledger)}
        stood = len(orders) == 1 and None not in orders
        still = swept.waited.reached and (swept.waited.at_rest or stood)
        full, unread = bool(swept.full), reads.unread
        return Reads(reads.source, reads.target, swept.waited, still, swept.agreed, full, unread=unread)

    def _compare(self, table: TableProgress, reads: Reads, directory: Path) -> None:
        if not reads.full:
            table.agree(reads.agreed)
            return
        before = table.aside_keys
        unread = table.part(reads.unread, directory.with_name(f"{directory.name}-read"))
        number = before - table.aside_keys
        if unread is None or table.aside is not None:
            try:
                self._compare_read(table, reads, directory)
            except VerifyError as error:
                if reads.wait.reached or error.__cause__ is None or not from_spark(error.__cause__):
                    raise
                table.unknown = f"its mapping fails on rows that weren't applied yet: {error.cause}"
        if unread is not None:
            table.put_back(unread, number)

    def _compare_read(self, table: TableProgress, reads: Reads, directory: Path) -> None:
        directory.mkdir()
        rows = reads.target.tables[table.target.name]
        if reads.mapped is not None and table.shape is not None:
            sides = stored_sides(self.spark(), reads.mapped, rows, table.columns, table.shape)
        else:
            if (aside := table.set_aside(reads.still)) is None:
                return
            sides, table.columns = canonical_sides(
                self.spark(), table.target, reads.source, rows, aside, self.source
            )
            table.uncompared = tuple(c.name for c in rows.columns if c not in table.columns)
        with mapping_failure(table.target):
            comparison = compare(sides.mapped, sides.target, sides.shape, directory, only=table.aside)
            if table.aside is None and comparison.target_rows != rows.rows:
                raise VerifyError(
                    "the comparison lost rows",
                    where=f"table {rows.name}: {rows.rows} read, {comparison.target_rows} compared",
                    remedy="this is a fault of the tool: report it",
                )
            table.take(
                comparison,
                sides,
                directory,
                reads.wait.reached,
                reads.still,
                reads.agreed,
                reads.one_view,
            )

    def _stepped(self, name: str) -> None:
        self.watch.stepped(name, self.step)

    def _check(self, tables: str) -> None:
        self.watch.check()
        self.watch.reading(tables)

    def _wait_for(self, tables: Sequence[str]) -> Wait:
        return lambda upto, ledger: self._wait(upto, tables, ledger)

    def _wait(
        self, upto: LogPlace, tables: Sequence[str], current: Callable[[], LedgerState | None]
    ) -> Waited:
        """Waits until the ledger has passed ``upto``, or until the log before it holds no change of the tables that
        isn't applied."""
        if self.limits.at_rest:
            return Waited(True, "nobody can write, and everything is applied", at_rest=True)
        watch = self.watch
        patience_s = watch.patience_s(self.limits.wait_s)
        deadline = watch.clock() + patience_s
        asked_at = -math.inf
        detail = ""
        while True:
            ledger = current()
            if ledger is None:
                return Waited(False, "the ledger is empty: nothing was applied yet")
            if ledger.order >= upto.order:
                return Waited(True, "the ledger has passed the source read")
            now = watch.clock()
            if now - asked_at >= _ASK_EVERY_S:
                asked_at = now
                pending = self.source.pending(ledger, upto, tables)
                detail = pending.detail
                if pending.answer is PendingAnswer.NO:
                    return Waited(True, pending.detail)
                if pending.stopped:
                    return Waited(False, f"the pipeline is not running, and {pending.detail}")
            if now >= deadline or ledger.order in self.in_vain:
                self.in_vain.add(ledger.order)
                stands = f"it stood at {ledger.token or ledger.order}; {detail}"
                place = upto.state or upto.order
                return Waited(
                    False,
                    f"the ledger did not reach the source read at {place} in {patience_s:g} s, {stands}",
                )
            watch.waiting(", ".join(tables), upto, ledger)
            watch.sleep(POLL_S)

    def _forget(self, number: int) -> None:
        """Removes the rows of a past round; keys that it settled or set aside are still needed."""
        for path in (self.directory / f"round-{number}").glob("*/*.parquet"):
            path.unlink()
        for path in (self.directory / f"round-{number}").glob("*/*.parts"):
            rmtree(path)
