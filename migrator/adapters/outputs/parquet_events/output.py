"""Typed Parquet files, one a table and row schema, in folders that appear whole.

::

    <folder>/0000000001-0000000042/public.orders-0.parquet    events of segments 1 to 42

A folder is written under another name, synced, and renamed in one step: it holds all events of its range or doesn't
exist. The name of the last one says how far the output has come.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from migrator.columnar.events import AFTER, BEFORE, NUMBER, OP, READ
from migrator.errors import OutputError
from migrator.model.table import TableId, TableSchema
from migrator.ports.output import WHOLE, Held, SegmentEvents, TableEvents, refused

_RANGE = re.compile(r"(\d{10,})-(\d{10,})")
_UNFINISHED = re.compile(r"\.\d{10,}-\d{10,}\.tmp")
_NAME_CHARACTERS = 150


@dataclass(slots=True)
class _Collected:
    """Events since the last commit, per table and row schema."""

    first: int = 0
    parts: dict[tuple[TableId, str], tuple[TableSchema, list[pa.Table]]] = field(default_factory=dict)


class ParquetFolder:
    """An ``EventOutput`` into a folder. Events are collected in memory until ``commit``; the mark is always 0.

    Folders that were committed may be moved away by whoever has read them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._collected = _Collected()

    def open(self, mark: int | None) -> Held | None:
        """Creates the folder when it is missing, removes an unfinished range, finds the last one (see the port)."""
        try:
            self._path.mkdir(mode=0o700, exist_ok=True)
            names = sorted(os.listdir(self._path))
            if mark is None and names:
                raise OutputError(
                    "the output folder isn't empty, and not known as an output of this migration",
                    where=str(self._path),
                    cause=f"it holds {names[0]!r}",
                    remedy="choose another --output, or move the folder away",
                )
            for name in names:
                if _UNFINISHED.fullmatch(name):
                    shutil.rmtree(self._path / name)
        except OSError as error:
            raise refused("the output folder can't be opened", self._path, error) from error
        last = max((int(found[2]) for name in names if (found := _RANGE.fullmatch(name))), default=0)
        return Held(last, WHOLE) if last else None

    def write(self, events: SegmentEvents) -> None:
        """Collects the events."""
        self._collected.first = self._collected.first or events.segment
        for table in events.tables:
            key = (table.schema.id, table.schema.version())
            rows = self._collected.parts.setdefault(key, (table.schema, []))[1]
            rows.append(_rows(events, table))

    def commit(self, segment: int) -> int:
        """Shows what was collected as one folder, durably. Raises ``OutputError`` when the disk refuses."""
        collected, self._collected = self._collected, _Collected()
        if not collected.parts:
            return 0
        name = f"{collected.first:010d}-{segment:010d}"
        unfinished = self._path / f".{name}.tmp"
        try:
            unfinished.mkdir(mode=0o700)
            for place, (schema, parts) in enumerate(collected.parts.values()):
                table = quote(str(schema.id), safe=". ")[:_NAME_CHARACTERS]
                _write(unfinished / f"{table}-{place}.parquet", pa.concat_tables(parts))
            _sync(unfinished)
            unfinished.rename(self._path / name)
            _sync(self._path)
        except OSError as error:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise refused("the output can't be written", unfinished, error) from error
        return 0

    def close(self) -> None:
        """Drops what wasn't committed."""
        self._collected = _Collected()

    def forget(self) -> None:
        """The folder is all that there is, and stays."""


def _rows(events: SegmentEvents, table: TableEvents) -> pa.Table:
    """The envelope as columns (see docs/reference/events.md), images as structs of the table's own types."""
    rows, schema = table.rows, table.schema
    count = rows.num_rows
    moment = events.committed_at_us // 1000 if events.committed_at_us else None
    ends = pc.fill_null(pc.equal(rows["position"], events.position.order), False)

    def constant(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    def of_last(value: object, kind: pa.DataType) -> pa.ChunkedArray:
        return pc.if_else(ends, pa.scalar(value, kind), pa.scalar(None, kind))

    return pa.table(
        {
            "segment": constant(events.segment, pa.int64()),
            "number": rows[NUMBER],
            "op": rows[OP],
            "ts_ms": constant(moment, pa.int64()),
            "schema": constant(schema.id.schema, pa.string()),
            "table": constant(schema.id.name, pa.string()),
            "key": constant(list(schema.key), pa.list_(pa.string())),
            "row_schema": constant(schema.version(), pa.string()),
            "snapshot": pc.equal(rows[OP], READ),
            "position_order": rows["position"],
            "position_token": of_last(events.position.token, pa.string()),
            "index": rows["index"],
            "commit_ts_ms": of_last(moment, pa.int64()),
            "before": rows[BEFORE],
            "after": rows[AFTER],
        }
    )


def _write(path: Path, rows: pa.Table) -> None:
    with path.open("xb") as file:
        pq.write_table(rows, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
