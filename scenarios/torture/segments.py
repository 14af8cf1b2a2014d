"""Segments of our event log -> deliveries of the history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.errors import MigratorError
from migrator.model.segment import FileKind, SegmentFile
from scenarios.recording.row_version import RowShape, RowVersion
from scenarios.torture.deliveries import Deliveries
from scenarios.workloads.base import Columns


def deliveries_of(event_log: Path, tracked: Iterable[Columns]) -> Deliveries:
    """Every delivery of an event log, in order.

    Within a segment nothing says which of a chunk file and a log file came first (to apply them it doesn't matter),
    so a segment must hold one kind only. Raises MigratorError for one that holds both.
    """
    columns = {layout.table: layout for layout in tracked}
    found = Deliveries()
    for manifest in FileBatchReader(event_log).manifests(0):
        if len({file.kind for file in manifest.files}) > 1:
            raise MigratorError(
                "a segment holds chunk rows and log images",
                where=f"segment {manifest.number}",
                cause="their order can't be told afterwards",
                remedy="cut a segment before and after every chunk",
            )
        for file in manifest.files:
            _add(found, manifest.number, file, columns[file.schema.id.name])
    return found


def _add(found: Deliveries, segment: int, file: SegmentFile, columns: Columns) -> None:
    data = pq.read_table(file.path)
    names = data.column_names
    shape = RowShape(columns, names)
    rows: list[Sequence[Any]] = list(zip(*(column.to_pylist() for column in data.columns), strict=True))
    versions = [shape.version(row) for row in rows]
    if file.kind is FileKind.CHUNK:
        for version in versions:
            found.read(segment, columns.table, version)
        return
    places = [names.index(name) for name in ("__position", "__index", "__sign")]
    before: tuple[int, int, RowVersion] | None = None
    for row, version in zip(rows, versions, strict=True):
        order, index, sign = (int(row[place]) for place in places)
        if before is not None and (sign < 0 or before[:2] != (order, index) or before[2].key != version.key):
            found.delete(segment, before[0], before[1], columns.table, before[2])
            before = None
        if sign < 0:
            before = (order, index, version)
        else:
            found.put(segment, order, index, columns.table, version)
            before = None
    if before is not None:
        found.delete(segment, before[0], before[1], columns.table, before[2])
