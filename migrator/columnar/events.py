"""A segment's rows as ordered change events: one row an event, before and after image as structs.

Order within a segment. Dump rows first, then the log's changes by commit position and index. A dump row whose
key the log changes in the same segment is left out, for it is the state that one of these changes leaves or
takes away: written before them it would be older events' future, written after them it could be a newer
event's past. So the versions of a key never decrease along the stream, and a dump row that is left out is
never missed: the change events of its key carry whole images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.emptied import EMPTIED
from migrator.columnar.types import IMAGE_FIELDS, INDEX, POSITION, SIGN
from migrator.model.segment import FileKind
from migrator.model.table import TableId, TableSchema

NUMBER, OP, BEFORE, AFTER = "number", "op", "before", "after"
READ, CREATE, UPDATE, DELETE, TRUNCATE = "r", "c", "u", "d", "t"
"""Kinds of events: a dump row, an insert, an update, a delete, every row of the table gone."""

Part = tuple[TableSchema, FileKind, pa.Table]
Events = tuple[TableSchema, pa.Table]


def order_events(parts: Sequence[Part]) -> list[Events]:
    """Events per table and row schema, numbered from 0 in the order of the whole segment.

    Args:
        parts: rows of one segment, laid out as ``FileKind`` says.

    Returns:
        Tables with ``number`` int64 (rising), ``op`` string, ``position`` and ``index`` int64 (NULL for dump rows),
        ``before`` and ``after`` structs of the source columns (NULL where there is no such image).
    """
    logs = [(schema, _changes(rows)) for schema, kind, rows in parts if kind is FileKind.LOG]
    touched = _touched((schema, rows) for schema, kind, rows in parts if kind is FileKind.LOG)
    dumps = [
        (schema, _reads(_untouched(schema, rows, touched.get(schema.id))))
        for schema, kind, rows in parts
        if kind is FileKind.CHUNK
    ]
    found, first = [], 0
    for schema, events in dumps:
        found.append((schema, _numbered(events, np.arange(first, first + events.num_rows))))
        first += events.num_rows
    for (schema, events), places in zip(logs, _ranks([events for _, events in logs]), strict=True):
        found.append((schema, _numbered(events, places + first).sort_by(NUMBER)))
    return [(schema, events) for schema, events in found if events.num_rows]


def _changes(images: pa.Table) -> pa.Table:
    """Log images as one row an event: an update's before image stands right before its after image."""
    position, index = (images[name].to_numpy() for name in (POSITION, INDEX))
    sign = images[SIGN].to_numpy()
    count = len(sign)
    follows = np.zeros(count, dtype=bool)  # an after image that belongs to the before image above it
    follows[1:] = (position[1:] == position[:-1]) & (index[1:] == index[:-1])
    follows[1:] &= (sign[1:] > 0) & (sign[:-1] < 0)
    starts = np.flatnonzero(~follows)
    paired = np.append(follows[1:], False)[starts] if count else np.zeros(0, dtype=bool)
    has_before = sign[starts] < 0
    emptied = sign[starts] == EMPTIED
    has_after = (~has_before & ~emptied) | paired
    operations = np.where(has_before, np.where(paired, UPDATE, DELETE), np.where(emptied, TRUNCATE, CREATE))
    row = _struct(images.drop_columns([field.name for field in IMAGE_FIELDS]))
    return _events(
        operations,
        pa.array(position[starts]),
        pa.array(index[starts]),
        row.take(pa.array(starts, mask=~has_before)),
        row.take(pa.array(np.where(paired, starts + 1, starts), mask=~has_after)),
    )


def _reads(rows: pa.Table) -> pa.Table:
    row = _struct(rows)
    count = rows.num_rows
    nothing = pa.nulls(count, pa.int64())
    return _events(np.full(count, READ), nothing, nothing, pa.nulls(count, row.type), row)


def _events(
    operations: np.ndarray, position: pa.Array, index: pa.Array, before: pa.Array, after: pa.Array
) -> pa.Table:
    return pa.table(
        {
            OP: pa.array(operations.tolist(), pa.string()),
            "position": position,
            "index": index,
            BEFORE: before,
            AFTER: after,
        }
    )


def _numbered(events: pa.Table, numbers: np.ndarray) -> pa.Table:
    return events.add_column(0, NUMBER, pa.array(numbers.astype(np.int64), pa.int64()))


def _ranks(tables: Sequence[pa.Table]) -> list[np.ndarray]:
    """Place of every row in the order of (position, index) over all tables."""
    positions = np.concatenate([table["position"].to_numpy() for table in tables] or [np.zeros(0)])
    indexes = np.concatenate([table["index"].to_numpy() for table in tables] or [np.zeros(0)])
    order = np.lexsort((indexes, positions))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return np.split(ranks, np.cumsum([table.num_rows for table in tables])[:-1]) if tables else []


def _struct(rows: pa.Table) -> pa.Array:
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema))


def _touched(logs: Iterable[tuple[TableSchema, pa.Table]]) -> dict[TableId, set[tuple[object, ...]]]:
    found: dict[TableId, set[tuple[object, ...]]] = {}
    for schema, images in logs:
        found.setdefault(schema.id, set()).update(_keys(schema, images))
    return found


def _untouched(schema: TableSchema, rows: pa.Table, touched: set[tuple[object, ...]] | None) -> pa.Table:
    if not touched:
        return rows
    return rows.filter(pa.array([key not in touched for key in _keys(schema, rows)], pa.bool_()))


def _keys(schema: TableSchema, rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(_comparable(rows[name]).to_pylist() for name in schema.key), strict=True))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that compare as Python objects: NaN equals itself, and no date is beyond Python's calendar."""
    if pa.types.is_temporal(column.type):
        return column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    if pa.types.is_floating(column.type):  # 0.0 and -0.0 are one key to a database, and NaN is equal to NaN
        return pc.if_else(pc.is_nan(column), pa.scalar("NaN"), pc.add(column, 0.0).cast(pa.string()))
    return column
