"""Rows of a joined target where one batch touches more grains than are mapped at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetRows
from migrator.run.apply.difference import parted

Change = tuple[pa.Table, pa.Table, bool]
"""Rows to delete, rows to write, and whether those without a row to delete must be new."""


def sliced(
    target: JoinedTarget, changes: Iterator[Change], folder: Path, say: Callable[[str], None]
) -> Iterator[TargetRows]:
    """Yields first all rows that vanish, then all that are written.

    A key may move from a grain of one slice to a grain of another; deleted after it was written, it would be
    lost. What is to be written waits on disk meanwhile, in ``folder``, which goes at the end.
    """
    key = list(target.table.key)
    rest: list[tuple[Path, Path, bool]] = []
    for before, after, strict in changes:
        gone, staying = parted(before, after, key)
        paths = (folder / f"{len(rest)}-before.parquet", folder / f"{len(rest)}-after.parquet")
        pq.write_table(staying, paths[0])
        pq.write_table(after, paths[1])
        rest.append((*paths, strict))
        if gone.num_rows:
            yield TargetRows(target.table, None, gone, None, False)
        say(f"{target.table.id.name}: slice {len(rest)} of the grains that one batch touches")
    for before_path, after_path, strict in rest:
        yield TargetRows(target.table, None, pq.read_table(before_path), pq.read_table(after_path), strict)
    shutil.rmtree(folder, ignore_errors=True)
    say("")
