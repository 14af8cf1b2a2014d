"""Reads of a round for tables that need more than chunks of one source table.

- **In one view** of each side, as many together as have no more rows than a chunk.
- **Chunk by chunk**, each in a view of its own, where they have more (``verify.tables.sweeps.table_sweep``).
- **By grain**, in rounds after the first, where only some keys are still open
(``verify.tables.sweeps.grain_sweep``).
- **By the rows that were swept**, right after a sweep, where no server knows the grain
(``verify.tables.sweeps.bucket_look``).

One snapshot of whole tables of any size is read only if the user asks for it.

When the time is up (``TimeIsUp``), a group of tables of which only a part was read isn't returned: a part of several
tables' rows proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from verify.readers.ports import TargetChunks
from verify.readers.snapshot import (
    LedgerState,
    LogPlace,
    SourceSnapshot,
    TargetRowsText,
    TargetSnapshot,
)
from verify.readers.source import SourceReader
from verify.tables.rounds.progress import Sizes, TableProgress
from verify.tables.rounds.watch import Watch
from verify.tables.sweeps.bucket_look import BucketLook, bucket_plan
from verify.tables.sweeps.grain_plan import GrainPlan, grain_plan
from verify.tables.sweeps.grain_sweep import GrainSweep
from verify.tables.sweeps.open_keys import OpenKeys, TableSides
from verify.tables.sweeps.pairing import TimeIsUp, Wait, Waited
from verify.tables.sweeps.table_sweep import TableSweep, source_key, target_key
from verify.tables.sweeps.target_keys import CellTexts

KEYS_MAX = 100_000
"""The most keys that are read by grain; if there are more, everything is read again."""


class TargetReader(Protocol):
    """The target's side."""

    def ledger(self) -> LedgerState | None:
        """The ledger now."""
        ...

    def snapshot(self, tables: Sequence[str], directory: Path) -> TargetSnapshot:
        """Ledger and whole tables from one transaction."""
        ...

    def chunks(self, table: str) -> AbstractContextManager[TargetChunks]:
        """One table piece by piece."""
        ...


@dataclass(frozen=True, slots=True)
class Reads:
    """The rows that a round read of some tables.

    Attributes:
        source: the old rows.
        target: the new ones.
        wait: whether the target stood at or after all that was read of the source.
        still: whether both sides stood at one position.
        agreed: rows that were not read, because both servers make one digest of them.
        full: whether any row was read.
        mapped: canonical rows that the mapping made of old ones; None where it is to be called on ``source``.
        one_view: whether all rows of one key come from one view on either side.
        unread: keys that were to be read again, but whose rows were not read.
    """

    source: SourceSnapshot
    target: TargetSnapshot
    wait: Waited
    still: bool
    agreed: int = 0
    full: bool = True
    mapped: Path | None = None
    one_view: bool = True
    unread: frozenset[CellTexts] = frozenset()

    @property
    def swept(self) -> bool:
        """Returns whether whole tables were read chunk by chunk."""
        return not self.one_view and self.mapped is None


Group = tuple[Reads, list[TableProgress]]


@dataclass(frozen=True, slots=True)
class TableReads:
    """Reads tables that need more than chunks of one source table.

    Attributes:
        source, target: the two sides.
        kinds: their engines.
        spark: a running session.
        rows: rows in a chunk; 0 reads one snapshot of each side, whatever is in it.
        wait_for: makes the wait for changes of some source tables.
        step: see ``verify.tables.rounds.live.Step``.
        pool: runs work in parallel.
        watch: the time that is left.
    """

    source: SourceReader
    target: TargetReader
    kinds: tuple[str, str]
    spark: Callable[[], SparkSession]
    rows: int
    wait_for: Callable[[Sequence[str]], Wait]
    step: Callable[[str], None]
    pool: ThreadPoolExecutor
    watch: Watch

    def read(self, tables: Sequence[TableProgress], directory: Path) -> list[Group]:
        """One round of some tables. ``directory`` gets a folder for each group of them.

        Groups that weren't read when the time was up are left out.
        """
        read: list[Group] = []
        with suppress(TimeIsUp):
            for group in self._groups(tables, directory):
                read.append(group())
                self.watch.read += len(read[-1][1])
        return read

    def _groups(self, tables: Sequence[TableProgress], directory: Path) -> Iterator[Callable[[], Group]]:
        if not self.rows:
            for table in tables:
                table.method = f"whole, in one snapshot of each side: {table.apart}"
            if tables:
                yield partial(self._whole, list(tables), directory / "whole")
            return
        for table in tables:
            if table.sizes is None:
                self._count(table)
        together, large = shared_views([table for table in tables if not table.unknown], self.rows)
        for table in chain.from_iterable(together):
            table.method = f"in one chunk, a short view of each side: {table.apart}"
        for n, group in enumerate(together):
            yield partial(self._whole, group, directory / f"view-{n}")
        by_grain = [table for table in large if self._has_grains(table)]
        for n, table in enumerate(by_grain):
            yield partial(self._by_grain, table, directory / f"grain-{n}")
        if swept := [table for table in large if table not in by_grain]:
            yield partial(self._chunk_by_chunk, swept, directory / "swept")

    def look(self, table: TableProgress, swept: Reads, directory: Path) -> Reads | None:
        """Settles keys that a sweep has left open; returns the reads for that, None if there were none."""
        if table.aside is None or not swept.wait.reached or self._has_grains(table):
            return None
        mapping = table.target
        if table.aside_keys > KEYS_MAX or self.watch.over():
            return None
        with self.source.tables(mapping.sources) as old, self.target.chunks(mapping.name) as new:
            if table.buckets is None:
                table.buckets = bucket_plan(
                    self.spark(), mapping, self.kinds, old, new, table.swept, self.rows
                )
            if isinstance(table.buckets, str):
                return None
            looking = BucketLook(
                self.spark(),
                OpenKeys(mapping, table.aside, table.columns),
                table.buckets,
                TableSides(old, new),
                self.wait_for(mapping.sources),
                self._stepped,
                directory,
            )
            try:
                seen = looking.look(swept.source.tables, table.owners, self.rows)
            except TimeIsUp:
                return None
        table.owners = seen.owners
        table.settle_equal(seen.equal, directory)
        if seen.low is None:
            return None
        source = SourceSnapshot(seen.low, seen.high, {})
        return Reads(source, TargetSnapshot(seen.ledger, {}), seen.waited, still=False, one_view=False)

    def nothing(self) -> Group:
        """Returns the reads of a round that had nothing to read."""
        place = self.source.position()
        source, target = SourceSnapshot(place, place, {}), TargetSnapshot(self.target.ledger(), {})
        return Reads(source, target, Waited(True, "no table could be read"), still=False), []

    def _count(self, table: TableProgress) -> None:
        """Counts a table's rows, and plans reads chunk by chunk if it is too large for one view."""
        upto, mapping = self.rows + 1, table.target
        with self.source.tables(mapping.sources) as old, self.target.chunks(mapping.name) as new:
            counts = {name: old.count(name, upto) for name in mapping.sources}
            table.sizes = Sizes(counts, new.count(upto))
            if _fits([table], self.rows):
                return
            keys = [source_key(old, self.kinds[0], name) for name in mapping.sources]
            reason = next((key for key in keys if isinstance(key, str)), "") or target_key(
                new, self.kinds[1], mapping.key
            )
        if isinstance(reason, str):
            table.unknown = (
                f"it has more than {self.rows:,} rows, and {reason}; --whole reads it in one snapshot of each side,"
                " however long that takes"
            )

    def _whole(self, tables: list[TableProgress], directory: Path) -> Group:
        """Reads both sides as a whole. The target's read view follows the source's as soon as the ledger allows.

        The source's rows are still being read then. This round can't settle rows that are written between the two
        views, so the time between them is kept short.
        """
        self._check(", ".join(table.target.name for table in tables))
        directory.mkdir()
        before = self.target.ledger()
        names = _sources(tables)
        views: Future[LogPlace] = Future()
        reading = self.pool.submit(self._read_source, names, directory, views)
        high = views.result()
        self.step("source view")
        wait = self.wait_for(names)(high, self.target.ledger)
        target = self.target.snapshot([table.target.name for table in tables], directory)
        self.step("target read")
        return Reads(reading.result(), target, wait, _still(wait, before, target.ledger)), tables

    def _read_source(self, names: Sequence[str], directory: Path, views: Future[LogPlace]) -> SourceSnapshot:
        try:
            return self.source.snapshot(names, directory, views.set_result)
        except BaseException as error:
            if not views.done():
                views.set_exception(error)  # else the thread that waits for the view would wait for ever
            raise

    def _stepped(self, name: str) -> None:
        self.watch.stepped(name, self.step)

    def _check(self, tables: str) -> None:
        self.watch.check()
        self.watch.reading(tables)

    def _chunk_by_chunk(self, tables: list[TableProgress], directory: Path) -> Group:
        self._check(", ".join(table.target.name for table in tables))
        before, names = self.target.ledger(), _sources(tables)
        sweep = TableSweep(
            self.source, self.target, self.kinds, self.wait_for(names), self._stepped, self.rows, directory
        )
        read = sweep.read(names, {table.target.name: table.target.key for table in tables})
        for table in tables:
            table.swept = {name: read.source.tables[name].rows for name in table.target.sources}
            if table.rounds == 0:
                chunks = read.chunks_of(table.target.sources, table.target.name)
                table.method = f"chunk by chunk, {chunks:,} chunks, all rows read: {table.apart}"
        views = read.views
        still = _still(views.waited, before, views.ledger)
        return Reads(read.source, read.target, views.waited, still, one_view=False), tables

    def _has_grains(self, table: TableProgress) -> bool:
        """Returns whether a table's open keys can be looked at by grain; finds out the first time."""
        if table.aside is None or table.aside_keys > KEYS_MAX:
            return False
        if table.grains is None:
            mapping = table.target
            with self.source.tables(mapping.sources) as old, self.target.chunks(mapping.name) as new:
                table.grains = grain_plan(self.spark(), mapping, self.kinds, old, new)
        return isinstance(table.grains, GrainPlan)

    def _by_grain(self, table: TableProgress, directory: Path) -> Group:
        self._check(table.target.name)
        mapping, plan, aside = table.target, table.grains, table.aside
        assert isinstance(plan, GrainPlan)
        assert aside is not None
        before = self.target.ledger()
        with self.source.tables(mapping.sources) as old, self.target.chunks(mapping.name) as new:
            wait = self.wait_for(mapping.sources)
            sweep = GrainSweep(
                self.spark(),
                OpenKeys(mapping, aside, table.columns),
                plan,
                TableSides(old, new),
                wait,
                self._stepped,
                directory,
            )
            # Keys that a caller named are looked for without a sweep before: the count, up to a chunk, will do.
            sizes = table.swept or (table.sizes.source if table.sizes else {})
            everything = sweep.everything(sizes, self.rows)
            read = sweep.look(everything if table.grain_pieces is None else table.grain_pieces)
            columns, old_rows = new.columns, sweep.old_rows()
        table.grain_pieces = None if read.strays else tuple(read.pieces)
        if read.unread:
            table.grains = "a grain has more rows than a chunk"
        rows = TargetRowsText(mapping.name, columns, sweep.target, read.target_rows)
        source = SourceSnapshot(read.low or read.high, read.high, old_rows)
        target = TargetSnapshot(read.ledger, {mapping.name: rows})
        still = _still(read.waited, before, read.ledger)
        reads = Reads(
            source, target, read.waited, still, mapped=sweep.mapped, one_view=False, unread=read.unread
        )
        return reads, [table]


def shared_views(
    tables: Sequence[TableProgress], rows: int
) -> tuple[list[list[TableProgress]], list[TableProgress]]:
    """Groups of tables that together have no more rows than a chunk on either side; and larger tables."""
    groups: list[list[TableProgress]] = []
    large = []
    for table in tables:
        if not _fits([table], rows):
            large.append(table)
        elif groups and _fits([*groups[-1], table], rows):
            groups[-1].append(table)
        else:
            groups.append([table])
    return groups, large


def _fits(tables: Sequence[TableProgress], rows: int) -> bool:
    sizes = [table.sizes for table in tables if table.sizes is not None]
    source: Mapping[str, int] = {name: n for size in sizes for name, n in size.source.items()}
    return sum(source.values()) <= rows and sum(size.target for size in sizes) <= rows


def _sources(tables: Sequence[TableProgress]) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table.target.sources))


def _still(waited: Waited, before: LedgerState | None, after: LedgerState | None) -> bool:
    stood = before is not None and after is not None and before.order == after.order
    return waited.reached and (waited.at_rest or stood)
