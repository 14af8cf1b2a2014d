"""Brings a batch's rows to the structure that the mapping was planned with.

The structure of a source table may change while a migration runs, and between two runs. Rows that were captured
under another structure than the present one lack columns, or have them under another type. Where nothing needs such
a column it is NULL from here on; where something does, the rows can't be mapped, and nobody may be told NULL.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.columnar.versions import misfits, not_captured
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import Batch, NetDelta

_BATCHES = 16
"""Files of so many batches are kept: more than ever wait to be applied."""
Chunk = tuple[TableSchema, tuple[str, ...], int]


class Fitting:
    """Fits batches for one run.

    Args:
        schemas: of the source tables as the mapping was planned with, which know what it needs of them.
        folder: for dump rows that have to be written anew; the driver and executors share it.
    """

    def __init__(self, schemas: Sequence[TableSchema], folder: Path):
        self._schemas = {schema.id: schema for schema in schemas}
        self._folder = folder
        self._folders = itertools.cycle(range(_BATCHES))

    def fitted(self, batch: Batch) -> Batch:
        """The batch, without columns that don't fit. Raises ``SchemaError`` where the mapping needs one of them."""
        odd: dict[tuple[TableId, str], list[str]] = {}  # two tables may have one structure
        for schema, rows in _schemas_of(batch):
            if schema.id in self._schemas:
                odd[schema.id, schema.version()] = self._odd(schema, rows)
        if not any(odd.values()):
            return batch

        def of(schema: TableSchema) -> list[str]:
            return odd.get((schema.id, schema.version()), [])

        folder = self._folder / str(next(self._folders))
        shutil.rmtree(folder, ignore_errors=True)
        numbers = itertools.count()
        return replace(
            batch,
            chunks=tuple(_chunk(chunk, of(chunk[0]), folder, numbers) for chunk in batch.chunks),
            deltas=tuple(_delta(delta, of(delta.schema)) for delta in batch.deltas),
        )

    def _odd(self, found: TableSchema, rows: int) -> list[str]:
        """The columns of rows that aren't what the mapping was planned with."""
        wanted = self._schemas[found.id]
        unfit = misfits(wanted, found)
        needed = [name for name in unfit if wanted.needs(name)]
        if needed and rows:
            raise not_captured(found.id, needed)
        return [name for name in unfit if name in found.names()]


def _schemas_of(batch: Batch) -> Iterator[tuple[TableSchema, int]]:
    for schema, _, rows in batch.chunks:
        yield schema, rows
    for delta in batch.deltas:
        yield delta.schema, delta.before.num_rows + delta.after.num_rows


def _delta(delta: NetDelta, odd: Sequence[str]) -> NetDelta:
    if not odd:
        return delta
    before, after = delta.before.drop_columns(odd), delta.after.drop_columns(odd)
    return replace(delta, schema=delta.schema.without(odd), before=before, after=after)


def _chunk(chunk: Chunk, odd: Sequence[str], folder: Path, numbers: Iterator[int]) -> Chunk:
    """Dump rows in files without the columns; the event log's own files stay as they are."""
    if not odd:
        return chunk
    schema, paths, rows = chunk
    folder.mkdir(parents=True, exist_ok=True)
    places = []
    for path in paths:
        places.append(str(folder / f"{next(numbers)}.parquet"))
        with pq.ParquetFile(path) as file:
            kept = [name for name in file.schema_arrow.names if name not in odd]
            layout = pa.schema([file.schema_arrow.field(name) for name in kept])
            with pq.ParquetWriter(places[-1], layout) as written:
                for part in file.iter_batches(columns=kept):
                    written.write_batch(part)
    return schema.without(odd), tuple(places), rows
