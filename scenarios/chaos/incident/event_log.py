"""The segments that an event log still holds, as a history: rows of chunks and changes, in the log's order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import read_manifest
from migrator.adapters.event_log.files.parquet import decode_rows, read_checked
from migrator.columnar.types import INDEX, POSITION, SIGN
from migrator.errors import EventLogError
from migrator.model.progress import Checkpoint
from migrator.model.segment import FileKind, Manifest
from migrator.model.table import TableSchema
from scenarios.chaos.incident.history import Cell, Change, History, Identity, Row, Transaction

_MOST_ROWS = 2_000_000


@dataclass(frozen=True)
class Kept:
    """The content of an event log.

    Attributes:
        history: what the segments say of the old rows.
        schemas: of the tables in it, the newest of each.
        segments: a description of each, for people.
        checkpoint: of the last one.
        lacking: reasons why something that was in the log isn't here.
        known: the rows of which the log holds an image.
    """

    history: History
    schemas: Mapping[str, TableSchema]
    segments: tuple[Mapping[str, Any], ...] = ()
    checkpoint: Checkpoint | None = None
    lacking: tuple[str, ...] = ()
    known: frozenset[Identity] = frozenset()


@dataclass
class _Reading:
    schemas: dict[str, TableSchema] = field(default_factory=dict)
    start: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    seen: set[Identity] = field(default_factory=set)
    changes: dict[int, list[Change]] = field(default_factory=lambda: defaultdict(list))
    rows: int = 0
    described: list[Mapping[str, Any]] = field(default_factory=list)
    checkpoint: Checkpoint | None = None

    def kept(self, lacking: list[str]) -> Kept:
        """Everything that was read; of a transaction whose end isn't there, nothing."""
        if self.checkpoint is not None and self.checkpoint.partial_order in self.changes:
            del self.changes[self.checkpoint.partial_order]
            lacking = [*lacking, "the end of the log's last transaction"]
        history = History(
            dict(self.start),
            tuple(Transaction(order, tuple(found)) for order, found in sorted(self.changes.items())),
        )
        return Kept(
            history,
            self.schemas,
            tuple(self.described),
            self.checkpoint,
            tuple(lacking),
            frozenset(self.seen),
        )

    def image(self, table: str, row: Row) -> bool:
        """Notes that a row is known; whether it wasn't before."""
        place = table, tuple(row.get(name) for name in self.schemas[table].key)
        new = place not in self.seen
        self.seen.add(place)
        return new


def read(directory: Path, kind: str) -> Kept:
    """Reads every segment that is there. A damaged or vanished one ends what can be told, with the reason.

    ``kind``: of the source, whose words values are written in.
    """
    layout, reading = Layout.of(directory), _Reading()
    numbers, lacking = layout.numbers(), list[str]()
    if not numbers:
        return Kept(History(), {}, lacking=("the event log holds no segment",))
    if numbers[0] > 1:
        lacking.append(_gone(1, max(durable.read_number(layout.released), numbers[0] - 1)))
    for place, number in enumerate(numbers):
        try:
            manifest = read_manifest(layout, number)
            if manifest is not None:
                if reading.rows + sum(file.rows for file in manifest.files) > _MOST_ROWS:
                    lacking.append(f"segments from {number} on: they hold more than {_MOST_ROWS:,} rows")
                    break
                _segment(manifest, kind, reading)
                continue
        except EventLogError as error:
            if durable.read_number(layout.released) < number:
                later = f", and {len(numbers) - place - 1} after it" if place + 1 < len(numbers) else ""
                lacking.append(f"segment {number}{later}: {error.what}")
                break
        lacking = [
            _gone(1, number)
        ]  # a run released it meanwhile; what came before begins no history without it
        reading = _Reading()
    return reading.kept(lacking)


def _gone(first: int, last: int) -> str:
    return f"segments {first} to {last} are no longer in the event log"


def _segment(manifest: Manifest, kind: str, reading: _Reading) -> None:
    """Takes a segment in: its changes first, since a row of a chunk gives way to what the log says of its key."""
    data = [
        (file, decode_rows(file, read_checked(file, manifest.number), manifest.number))
        for file in manifest.files
    ]
    found: list[tuple[int, int, Change]] = []
    for file, rows in data:
        table = file.schema.id.name
        reading.schemas[table] = file.schema
        reading.rows += rows.num_rows
        if file.kind is FileKind.LOG and not manifest.echo:
            found += _changes(table, rows, kind)
    for order, _, change in sorted(found, key=lambda one: one[:2]):
        if change.before is not None and reading.image(change.table, change.before):
            reading.start[change.table].append(change.before)
        if change.after is not None:
            reading.image(change.table, change.after)
        reading.changes[order].append(change)
    for file, rows in data:
        if file.kind is FileKind.CHUNK:
            name = file.schema.id.name
            reading.start[name] += [row for row in cells(rows, kind) if reading.image(name, row)]
    reading.described.append(_described(manifest))
    reading.checkpoint = manifest.checkpoint


def _changes(table: str, images: pa.Table, kind: str) -> Iterator[tuple[int, int, Change]]:
    places = zip(
        *(images.column(name).to_pylist() for name in (POSITION, INDEX, SIGN)),
        cells(images.drop_columns([POSITION, INDEX, SIGN]), kind),
        strict=True,
    )
    open_: tuple[int, int, Row] | None = None
    for order, index, sign, row in places:
        if open_ is not None and (open_[:2] != (order, index) or sign != 1):
            yield *open_[:2], Change(table, open_[2], None)
            open_ = None
        if sign == -1:
            open_ = order, index, row
        elif sign == 0:
            yield order, index, Change(table, None, None)
        else:
            yield order, index, Change(table, open_[2] if open_ else None, row)
            open_ = None
    if open_ is not None:
        yield *open_[:2], Change(table, open_[2], None)


def cells(rows: pa.Table, kind: str) -> list[Row]:
    """Rows in logical types as the values that a server of that kind takes back."""
    columns = {name: _texts(rows.column(name), kind) for name in rows.column_names}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def of_file(path: Path, kind: str) -> list[Row]:
    """The rows of a Parquet file that the judge wrote."""
    return cells(pq.read_table(path), kind)


def _texts(column: pa.ChunkedArray, kind: str) -> list[Cell]:
    """Values of a column as text; bytes stay."""
    write: Callable[[Any], Cell] = str
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return _times(column, kind)
    if pa.types.is_boolean(column.type):
        words = ("true", "false") if kind == "postgresql" else ("1", "0")
        write = lambda value: words[not value]  # noqa: E731
    elif pa.types.is_floating(column.type):
        write = repr
    elif pa.types.is_decimal(column.type):
        write = lambda value: format(value, "f")  # noqa: E731
    elif pa.types.is_binary(column.type):
        write = bytes
    return [None if value is None else write(value) for value in column.to_pylist()]


def _times(column: pa.ChunkedArray, kind: str) -> list[Cell]:
    """Dates and timestamps; the ends of the range are PostgreSQL's infinities."""
    bits = 32 if pa.types.is_date(column.type) else 64
    ends = {2 ** (bits - 1) - 1: "infinity", -(2 ** (bits - 1)): "-infinity"}
    numbers = column.cast(pa.int32() if bits == 32 else pa.int64()).to_pylist()
    usual = pa.array(
        [None if one in ends else one for one in numbers], pa.int32() if bits == 32 else pa.int64()
    )
    texts = usual.cast(column.type).cast(pa.string()).to_pylist()
    mark = "" if kind == "postgresql" else "Z"
    return [
        ends[number] if number in ends else text and (text.removesuffix(mark) if mark else text)
        for number, text in zip(numbers, texts, strict=True)
    ]


def _described(manifest: Manifest) -> dict[str, Any]:
    return {
        "number": manifest.number,
        "epoch": manifest.epoch,
        "order": manifest.checkpoint.position.order,
        "transactions": manifest.transactions,
        "row_changes": manifest.row_changes,
        "echo": manifest.echo,
        "files": [
            {"table": file.schema.id.name, "kind": file.kind.value, "rows": file.rows}
            for file in manifest.files
        ],
    }
