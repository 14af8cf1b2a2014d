"""Rounds of one table that is verified piece by piece: everything at first, then the keys that were set aside.

In a table's first round, the sessions that plan its reads are also those that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Protocol

from pyspark.sql import SparkSession

from verify.readers.chunk_keys import INTEGER, Piece, lists_of
from verify.readers.ports import ChunkedSource, ChunkedTarget, SourceChunks
from verify.readers.snapshot import (
    LedgerState,
    SourceSnapshot,
    SourceTable,
    TargetRowsText,
    TargetSnapshot,
)
from verify.tables.compare.compare import Shape, key_names
from verify.tables.rounds.progress import TableProgress
from verify.tables.sweeps import lanes
from verify.tables.sweeps.chunk_choice import ChunkPlan, choose, why_whole
from verify.tables.sweeps.chunk_sweep import Sweep, Swept
from verify.tables.sweeps.pairing import TimeIsUp, Wait
from verify.tables.sweeps.target_keys import CellTexts

_KEYS_IN_A_LIST = 500
_KEYS_MAX = 100_000
"""The most keys set aside that are read by key; if there are more, their pieces are read again."""


class ChunkedSides(Protocol):
    """The readers through which a comparison reads both sides."""

    @property
    def source(self) -> ChunkedSource:
        """The old database."""
        ...

    @property
    def target(self) -> ChunkedTarget:
        """The new database."""
        ...

    @property
    def kinds(self) -> tuple[str, str]:
        """Their engines (``verify.readers.engines.JUDGED``)."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkReads:
    """The rows that a round read of one table, in the form of snapshots.

    Attributes:
        source: the old rows.
        target: the new ones.
        before: the ledger before anything was read.
        swept: the findings of the sweep that read them.
        unread: keys set aside that were to be read again when the time was up.
    """

    source: SourceSnapshot
    target: TargetSnapshot
    before: LedgerState | None
    swept: Swept
    unread: frozenset[CellTexts] = frozenset()


def read_chunks(
    sides: ChunkedSides,
    table: TableProgress,
    directory: Path,
    wait: Wait,
    step: Callable[[str], None],
    rows: int,
    spark: Callable[[], SparkSession],
    at_once: int,
) -> ChunkReads | str:
    """Reads one round: everything in the first one, later the keys set aside. Returns a text if the table can't be
    read piece by piece.

    Args:
        sides: readers of both.
        table: the progress so far; gets the plan, the columns and the method.
        directory: made anew; gets two folders with a file for each piece that was read.
        wait: see ``chunk_sweep.Sweep``.
        step: likewise.
        rows: source rows in a piece.
        spark: a running session, for the plan.
        at_once: the most lanes of a large table, see ``verify.tables.sweeps.lanes``.

    Raises ``MappingError``, ``VerifyError``, ``ConnectionFailed``; ``TimeIsUp`` if nothing that counts was read.
    """
    reason = why_whole(table.target)
    if reason:
        return reason
    with (
        lanes.meanwhile(sides.target.chunks(table.target.name)) as new,
        sides.source.chunks(table.target.sources[0]) as old,
        _others(sides, table, old, at_once) as others,
    ):
        if table.plan is None:
            found = choose(spark(), table.target, sides.kinds, old, new)
            if isinstance(found, str):
                return found
            table.plan = found
        return _swept(table, table.plan, (old, new()), others, directory, wait, step, rows)


def _others(
    sides: ChunkedSides, table: TableProgress, source: SourceChunks, at_once: int
) -> AbstractContextManager[lanes.Others | None]:
    """Further lanes for the first round, the only one that reads everything."""
    if table.rounds > 0 or at_once < 2:
        return nullcontext()
    return lanes.prepared(
        (sides.source, sides.target), sides.kinds[0], source, table.target.name, at_once - 1
    )


def _swept(
    table: TableProgress,
    plan: ChunkPlan,
    pair: lanes.Pair,
    others: lanes.Others | None,
    directory: Path,
    wait: Wait,
    step: Callable[[str], None],
    rows: int,
) -> ChunkReads:
    directory.mkdir()
    folders = (directory / "source.parts", directory / "target.parts")
    old, new = pair
    before = new.ledger()
    wait, step = lanes.waits_of_all(wait), lanes.one_at_a_time(Lock(), step)
    wanted = others.wanted() if others else 0

    def sweep_of(chunks: lanes.Pair) -> Sweep:
        return Sweep(plan, *chunks, wait, step, rows, folders)

    sweep = sweep_of(pair)
    unread: frozenset[CellTexts] = frozenset()
    if table.rounds > 0:
        again = _again(table, plan)
        if table.named and plan.pushed is not None:
            again = again.only(sweep.unequal_of(again.pieces))
        swept = sweep.rows_of(again.pieces)
        if swept.cut:
            unread = again.after(len(swept.full))
    elif others and wanted and plan.pushed is not None and plan.key[0].kind == INTEGER:
        beside = [partial(_opened, sweep_of, opened) for opened in others.opened[:wanted]]
        swept = sweep.rows_of(lanes.unequal(sweep, beside))
    else:
        swept = sweep.everything()
    if table.rounds == 0:
        table.columns = list(plan.filled)
        table.shape = Shape(tuple(c.name for c in plan.filled), table.target.key)
        table.uncompared = tuple(c.name for c in new.columns if c not in plan.filled)
        table.method = _method(plan, swept)
        table.cut = swept.cut
    table.pieces = tuple(swept.full)
    source = SourceTable(old.schema, folders[0], swept.source_rows)
    target = TargetRowsText(table.target.name, new.columns, folders[1], swept.target_rows)
    low = swept.low or swept.high
    return ChunkReads(
        SourceSnapshot(low, swept.high, {plan.source: source}),
        TargetSnapshot(swept.ledger, {target.name: target}),
        before,
        swept,
        unread,
    )


def _opened(sweep_of: Callable[[lanes.Pair], Sweep], opened: Callable[[], lanes.Pair]) -> Sweep:
    return sweep_of(opened())


@dataclass(frozen=True, slots=True)
class _Again:
    """Pieces that hold the keys set aside, and these keys in the order of the pieces; None if that isn't known."""

    pieces: Sequence[Piece]
    keys: Sequence[CellTexts] | None

    def only(self, pieces: Sequence[Piece]) -> _Again:
        """Returns what is left of these, in their order: pieces whose rows have to be read."""
        wanted, size = {id(piece) for piece in pieces}, _KEYS_IN_A_LIST
        places = [n for n, piece in enumerate(self.pieces) if id(piece) in wanted]
        keys = [key for n in places for key in (self.keys or ())[n * size : (n + 1) * size]]
        return _Again([self.pieces[n] for n in places], keys)

    def after(self, read: int) -> frozenset[CellTexts]:
        """The keys behind the first ``read`` pieces. Raises ``TimeIsUp`` where nobody knows which they are."""
        if self.keys is None:
            raise TimeIsUp("only a part of the keys set aside was read again")
        return frozenset(self.keys[read * _KEYS_IN_A_LIST :])


def _again(table: TableProgress, plan: ChunkPlan) -> _Again:
    if table.aside is None or (table.aside_keys > _KEYS_MAX and not table.named):
        return _Again(table.pieces, None)
    own = key_names(Shape(table.target.key, table.target.key))
    rows = [tuple(row.values()) for row in table.aside.select(*own).toArrow().to_pylist()]
    order = [table.target.key.index(column.target) for column in plan.key]
    return _Again(lists_of([tuple(row[n] for n in order) for row in rows], _KEYS_IN_A_LIST), rows)


def _method(plan: ChunkPlan, swept: Swept) -> str:
    if plan.pushed is None:
        return f"chunk by chunk, {swept.pieces:,} chunks, all rows read"
    read = f"{swept.source_rows:,} rows of the source read" if swept.full else "no row read"
    return f"chunk by chunk, {swept.pieces:,} chunks, hashes computed by both servers, {read}"
