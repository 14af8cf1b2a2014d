"""Row changes as the binary log stores them: cut out of their events, decoded later and many at once.

A change is a byte that says what it is (``INSERT``, ``UPDATE``, ``DELETE``) and its row images as they stand in
the log, an update's before image in front of its after image. To cut them out only lengths are looked at. Images
become columns by numpy and Arrow (``bulk_numbers``, ``bulk_texts``); a type or a value that these don't know goes
value by value over the server's text, in its own column only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows.bulk_numbers import Convert, number_of
from migrator.adapters.sources.binlog.rows.bulk_texts import text_of
from migrator.adapters.sources.binlog.rows.cells import PAD, Cells, Numbers, prefixed
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.row_decoder import (
    ADDRESSES,
    ColumnPlan,
    Generator,
    decoder_of,
)
from migrator.adapters.sources.binlog.rows.row_forms import DELETE, INSERT, MARKS, UPDATE, RowForm
from migrator.adapters.sources.binlog.rows.row_walk import (
    KeyOf,
    Texts,
    build_ends,
    build_key,
    build_texts,
)
from migrator.columnar.text import columns_to_table
from migrator.columnar.types import arrow_schema
from migrator.errors import SourceError
from migrator.model.event import Images, Key, Operation, RowChange, Value
from migrator.model.table import Column, TableSchema

BATCH_BYTES = 16 << 20
"""Bytes of images that are decoded at once: Arrow's offsets have 32 bits, and the processor's cache is small."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading of one wanted column: at its place in the log's rows, in bulk if there is a way, else as text."""

    place: int
    column: Column
    convert: Convert | None
    texts: Texts


class RowCodec:
    """A ``ChangeCodec`` for one layout of a table.

    Args:
        schema: the row schema: the wanted columns in the log's order.
        columns: of the log's rows.
        declared: the type of each as the catalog declares it, None for a column that isn't wanted.
        charsets, dialect: of the server.

    Raises ``SourceError`` for a column that can't be decoded.
    """

    def __init__(
        self,
        schema: TableSchema,
        columns: Sequence[LoggedColumn],
        declared: Sequence[str | None],
        charsets: Charsets,
        dialect: Dialect,
    ):
        self._schema = schema
        self._columns = columns
        self._declared = declared
        self._charsets = charsets
        self._dialect = dialect
        self._generator = Generator(charsets, dialect)
        self._plans = self._generator.plans(columns, declared)
        self._decode = decoder_of(self._generator, self._plans, declared)
        self._ends = build_ends(self._generator, self._plans)
        names = [column.name for column in columns]
        self._key: KeyOf = build_key(self._generator, self._plans, [names.index(name) for name in schema.key])
        self._readings = self._made_readings()
        self._lacking: dict[int, RowCodec | None] = {}

    @property
    def schema(self) -> TableSchema:
        """See ``ChangeCodec``."""
        return self._schema

    def lacking(self, present: int) -> RowCodec | None:
        """The codec of rows that have only some of the log's columns, by their bits; None where a wanted one is
        missing."""
        every = (1 << len(self._columns)) - 1  # the bits behind them mean nothing
        if present & every == every:
            return self
        if present not in self._lacking:
            places = [place for place in range(len(self._columns)) if present >> place & 1]
            columns = [self._columns[place] for place in places]
            declared = [self._declared[place] for place in places]
            whole = {*self._schema.names()} <= {column.name for column in columns}
            like = (self._schema, columns, declared, self._charsets, self._dialect)
            self._lacking[present] = RowCodec(*like) if whole else None
        return self._lacking[present]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowCodec) and self._read() == other._read()

    def __hash__(self) -> int:
        return hash(self._read())

    def _read(self) -> tuple[object, ...]:
        return self._schema, tuple(self._columns), tuple(self._declared)

    def cut(self, body: bytes, at: int, operation: Operation) -> list[bytes]:
        """The changes of a row event whose images begin at ``at``.

        Raises ``IndexError`` or ``ValueError`` on damaged bytes.
        """
        ends, mark = self._ends(body, at, len(body)), MARKS[operation]
        if operation is Operation.UPDATE:
            if len(ends) % 2:
                raise ValueError("an update has a before image without an after image")
            ends = ends[1::2]
        if len(ends) == 1:
            return [mark + body[at:]]
        return [mark + body[start:end] for start, end in zip([at, *ends], ends, strict=False)]

    def only(self, event: bytes, stop: int, form: RowForm) -> bytes | None:
        """The change of a row event of that form with images up to ``stop``; None if it has several.

        Raises as ``cut`` does.
        """
        return (
            form.mark + event[form.at : stop]
            if len(self._ends(event, form.at, stop)) == form.images
            else None
        )

    def changes(self, items: Sequence[bytes]) -> list[RowChange]:
        """See ``ChangeCodec``."""
        table, found = self._schema.id, []
        for item in items:
            try:
                rows = self._decode(item, 1, len(item))
            except (ValueError, LookupError, struct.error) as error:
                raise self._undecodable("a row", error) from error
            if item[0] == INSERT:
                found.append(RowChange(table, Operation.INSERT, None, rows[0]))
            elif item[0] == DELETE:
                found.append(RowChange(table, Operation.DELETE, rows[0], None))
            else:
                found.append(RowChange(table, Operation.UPDATE, rows[0], rows[1]))
        return found

    def keys(self, items: Sequence[bytes]) -> list[tuple[Key, ...]]:
        """See ``ChangeCodec``."""
        key = self._key
        try:
            return [(key(item, 1),) if item[0] != UPDATE else self._both_keys(item) for item in items]
        except (ValueError, LookupError, struct.error) as error:
            raise self._undecodable("the key", error) from error

    def _both_keys(self, item: bytes) -> tuple[Key, ...]:
        before = self._key(item, 1)
        after = self._key(item, self._ends(item, 1, len(item))[0])
        return (before,) if before == after else (before, after)

    def images(self, items: Sequence[bytes]) -> Images:
        """See ``ChangeCodec``."""
        if not items:
            empty = arrow_schema(self._schema).empty_table()
            return Images(np.zeros(0, np.int64), np.zeros(0, np.int8), empty)
        batches = list(self._batches(items))
        if len(batches) == 1:
            return batches[0]
        places, signs, rows = zip(*batches, strict=True)
        return Images(np.concatenate(places), np.concatenate(signs), pa.concat_tables(rows))

    def _batches(self, items: Sequence[bytes]) -> Iterator[Images]:
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        batch = np.cumsum(lengths) // BATCH_BYTES
        starts = np.flatnonzero(np.diff(batch, prepend=-1)).tolist()
        for start, stop in zip(starts, [*starts[1:], len(items)], strict=True):
            try:
                places, signs, rows = self._decoded(items[start:stop], lengths[start:stop])
            except (ValueError, LookupError) as error:
                raise self._undecodable("a row", error) from error
            yield Images(places + start, signs, rows)

    def _decoded(self, items: Sequence[bytes], lengths: Numbers) -> Images:
        data = b"".join((PAD, *items, PAD))
        stops = np.cumsum(lengths) + len(PAD)
        starts = stops - lengths
        kinds = np.frombuffer(data, np.uint8)[starts]
        updates = np.flatnonzero(kinds == UPDATE)
        counts = np.where(kinds == UPDATE, 2, 1)
        firsts = np.cumsum(counts) - counts
        at = np.empty(int(counts.sum()), np.int64)
        at[firsts] = starts + 1
        if len(updates):
            at[firsts[updates] + 1] = _Layout(data, at[firsts[updates]], self._plans).ends
        signs = np.full(len(at), 1, np.int8)
        signs[firsts[kinds != INSERT]] = -1
        layout = _Layout(data, at, self._plans)
        if not np.array_equal(layout.ends[firsts + counts - 1], stops):
            raise ValueError("a row image doesn't end where its change ends")
        arrays = [self._array(reading, layout.cells[reading.place]) for reading in self._readings]
        rows = pa.Table.from_arrays(arrays, schema=arrow_schema(self._schema))
        return Images(np.repeat(np.arange(len(items)), counts), signs, rows)

    def _made_readings(self) -> list[_Reading]:
        wanted = [place for place, kind in enumerate(self._declared) if kind is not None]
        return [
            _Reading(place, column, self._convert(place, column), self._texts(place))
            for place, column in zip(wanted, self._schema.columns, strict=True)
        ]

    def _convert(self, place: int, column: Column) -> Convert | None:
        logged = self._columns[place]
        if self._declared[place] in ADDRESSES:
            return None
        return number_of(logged, column, self._dialect) or text_of(logged, column, self._charsets)

    def _texts(self, place: int) -> Texts:
        return build_texts(self._generator, self._plans[place], place)

    def _array(self, reading: _Reading, cells: Cells) -> pa.Array | pa.ChunkedArray:
        if reading.convert is not None:
            try:
                array = reading.convert(cells)
            except (ValueError, LookupError):  # the way over single values says which one it is
                array = None
            if array is not None:
                return array
        texts = self._texts_of(reading, cells)
        values: list[Value] = list(texts)
        if cells.valid is not None:
            remaining = iter(texts)
            values = [next(remaining) if valid else None for valid in cells.valid.tolist()]
        one = TableSchema(self._schema.id, (reading.column,), ())
        return columns_to_table(one, [values]).column(0)

    def _texts_of(self, reading: _Reading, cells: Cells) -> list[str | bytes]:
        spans = list(zip(cells.at.tolist(), cells.stop.tolist(), strict=True))
        try:
            return reading.texts(cells.data, spans)
        except (ValueError, LookupError, struct.error):
            for at, stop in spans:  # to name the first one
                try:
                    reading.texts(cells.data, [(at, stop)])
                except (ValueError, LookupError, struct.error) as error:
                    what = f"the value {cells.data[at:stop][:40].hex()} of column {reading.column.name}"
                    raise self._undecodable(what, error) from error
            raise

    def _undecodable(self, what: str, error: Exception) -> SourceError:
        return SourceError(
            f"{what} of a change in the log can't be decoded",
            where=str(self._schema.id),
            cause=f"{type(error).__name__}: {error}",
            remedy="correct the value in the source, or leave the table out of the migration",
        )


class _Layout:
    """The places of the values of images, column by column: ``cells`` of each column, ``ends`` of the images."""

    def __init__(self, data: bytes, starts: Numbers, plans: Sequence[ColumnPlan]):
        rows, width = len(starts), (len(plans) + 7) // 8
        bits = np.frombuffer(data, np.uint8)[starts[:, None] + np.arange(width)]
        nulls = np.unpackbits(bits, axis=1, count=len(plans), bitorder="little").astype(bool)
        some: Numbers = np.any(nulls, axis=0)
        self.cells: list[Cells] = []
        at = starts + width
        for place, plan in enumerate(plans):
            if plan.prefix:
                sizes = prefixed(data, at, plan.prefix)
                at = at + plan.prefix
                stop = at + sizes
            else:
                stop = at + plan.width
            if some[place]:
                valid = ~nulls[:, place]
                self.cells.append(Cells(data, at[valid], stop[valid], valid, rows))
                at = np.where(valid, stop, at - plan.prefix)
            else:
                self.cells.append(Cells(data, at, stop, None, rows))
                at = stop
        self.ends = at
