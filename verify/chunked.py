"""Rounds of one table that is verified piece by piece: everything at first, then the keys that were set aside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from transforms.registry import TargetMapping
from verify.chunk_choice import ChunkPlan, choose, why_whole
from verify.chunk_keys import Piece, lists_of
from verify.chunk_reader import ChunkedSource, ChunkedTarget
from verify.chunk_sweep import Sweep, Swept, Wait
from verify.compare import Shape, key_names
from verify.rounds import TableProgress
from verify.snapshot import SourceSnapshot, SourceTable, TargetRowsText, TargetSnapshot

_KEYS_IN_A_LIST = 500
_KEYS_MAX = 100_000
"""Keys set aside that are looked at one by one; of more, the pieces that they are in are read again."""


class ChunkedSides(Protocol):
    """How a comparison reads both sides."""

    @property
    def source(self) -> ChunkedSource:
        """The old database."""
        ...

    @property
    def target(self) -> ChunkedTarget:
        """The new database."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkReads:
    """What a round read of one table, in the form of snapshots; ``swept`` says how they came to be."""

    source: SourceSnapshot
    target: TargetSnapshot
    swept: Swept


def plan_of(
    sides: ChunkedSides, kinds: tuple[str, str], target: TargetMapping, spark: Callable[[], SparkSession]
) -> ChunkPlan | str:
    """How the table can be verified piece by piece, or why not. Raises ``MappingError``, ``VerifyError``."""
    reason = why_whole(target)
    if reason:
        return reason
    with sides.source.chunks(target.sources[0]) as old, sides.target.chunks(target.name) as new:
        return choose(spark(), target, kinds, old, new)


def read_chunks(
    sides: ChunkedSides,
    table: TableProgress,
    directory: Path,
    wait: Wait,
    step: Callable[[str], None],
    rows: int,
) -> ChunkReads:
    """A round: everything in the first one, later the keys set aside. Raises ``VerifyError``, ``ConnectionFailed``.

    Args:
        sides: readers of both.
        table: what is known so far; learns its columns and its method.
        directory: made anew; gets two folders with a file for each piece that was read.
        wait: see ``chunk_sweep.Sweep``.
        step: likewise.
        rows: source rows in a piece.
    """
    plan, name = table.plan, table.target.name
    assert plan is not None
    directory.mkdir()
    folders = (directory / "source.parts", directory / "target.parts")
    with sides.source.chunks(plan.source) as old, sides.target.chunks(name) as new:
        sweep = Sweep(plan, old, new, wait, step, rows, folders)
        swept = sweep.everything() if table.rounds == 0 else sweep.rows_of(_again(table, plan))
        schema, columns = old.schema, new.columns
    if table.rounds == 0:
        table.columns = list(plan.filled)
        table.shape = Shape(tuple(c.name for c in plan.filled), table.target.key)
        table.uncompared = tuple(c.name for c in columns if c not in plan.filled)
        table.method = _method(plan, swept)
    table.pieces = tuple(swept.full)
    source = SourceTable(schema, folders[0], swept.source_rows)
    target = TargetRowsText(name, columns, folders[1], swept.target_rows)
    low = swept.low or swept.high
    return ChunkReads(
        SourceSnapshot(low, swept.high, {plan.source: source}),
        TargetSnapshot(swept.ledger, {name: target}),
        swept,
    )


def _again(table: TableProgress, plan: ChunkPlan) -> Sequence[Piece]:
    """The pieces that hold the keys set aside."""
    if table.aside is None or table.aside_keys > _KEYS_MAX:
        return table.pieces
    names = dict(zip(table.target.key, key_names(Shape(table.target.key, table.target.key)), strict=True))
    rows = table.aside.select(*[names[column.target] for column in plan.key]).toArrow().to_pylist()
    return lists_of([tuple(row.values()) for row in rows], _KEYS_IN_A_LIST)


def _method(plan: ChunkPlan, swept: Swept) -> str:
    if plan.pushed is None:
        return f"chunk by chunk, {swept.pieces:,} chunks, all rows read"
    read = f"{swept.source_rows:,} rows of the source read" if swept.full else "no row read"
    return f"chunk by chunk, {swept.pieces:,} chunks, hashes computed by both servers, {read}"
