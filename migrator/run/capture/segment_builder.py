"""Collects the capture core's outputs until they become a segment.

Of a table that was emptied (TRUNCATE) a segment holds no dump rows. Those placed before it are gone. Those placed
after it were inserted after it, by changes that the log delivered before the chunk got its place: they are in this
segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.emptied import EmptiedCodec
from migrator.columnar.types import INDEX, POSITION, image_table
from migrator.core.capture import EmitChunk, EmitPart, EmitSchema, Output
from migrator.model.event import ChangeCodec, EmptyingCodec, TransactionPart
from migrator.model.progress import Checkpoint
from migrator.model.requests.request import Doubt
from migrator.model.segment import FileKind
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import SegmentContent, TableData


@dataclass(slots=True)
class _Logged:
    """Changes of one codec, in runs: of each its length, and the version of the first; the others count on from it.

    Plain lists, one append a column: most runs of a busy log are one change.
    """

    codec: ChangeCodec
    items: list[Any] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)


_Images = tuple[TableSchema, list[pa.Table]]
_Found = dict[tuple[TableId, str], _Images]
"""Images by table and version of the row schema."""


class SegmentBuilder:
    """Outputs of the core since the last segment, per table and row schema.

    Args:
        schemas: row schemas as of the last segment.

    ``echo``: whether the changes being collected are echoes (``TransactionPart.echo``); set while there are none.
    """

    def __init__(self, schemas: dict[TableId, TableSchema]):
        self._schemas = schemas
        self.echo = False
        self._clear()

    def _clear(self) -> None:
        self._runs: dict[int, _Logged] = {}  # by identity: a codec's hash may be dear
        self._chunks: dict[tuple[TableId, str], tuple[TableSchema, list[Any]]] = {}
        self._emptied: list[tuple[TableId, int, int]] = []
        self.rows = 0
        self.bytes = 0
        self.row_changes = 0
        self.transactions = 0
        self.chunk_rows = 0
        self.committed_at_us = 0

    def add(self, output: Output) -> None:
        """Takes the next output."""
        match output:
            case EmitPart():
                self._add_part(output.part)
            case EmitSchema():
                self._schemas[output.schema.id] = output.schema
            case EmitChunk():
                self._add_chunk(output)

    def _add_chunk(self, output: EmitChunk) -> None:
        schema = self._schemas[output.chunk.request.table]
        if output.kept_rows:
            self._chunks.setdefault((schema.id, schema.version()), (schema, []))[1].append(output.rows)
            self.bytes += output.rows.nbytes
        self.rows += output.kept_rows
        self.chunk_rows += output.kept_rows

    def _add_part(self, part: TransactionPart) -> None:
        position, index = part.position.order, part.first_index
        for codec, items, size_bytes in part.runs:
            self.bytes += size_bytes
            logged = self._runs.get(id(codec))
            if logged is None:
                if isinstance(codec, EmptyingCodec):
                    self._emptied.append((codec.schema.id, position, index))
                    index += len(items)
                    continue
                logged = self._runs[id(codec)] = _Logged(codec)
            count = len(items)
            logged.items += items
            logged.counts.append(count)
            logged.positions.append(position)
            logged.firsts.append(index)
            index += count
        size = index - part.first_index
        self.rows += size
        self.row_changes += size
        if part.last:
            self.transactions += 1
            self.committed_at_us = part.committed_at_us

    def _logged(self) -> Iterator[TableData]:
        """Images per table and row schema, in log order."""
        found: _Found = {}
        for logged in self._runs.values():
            schema = logged.codec.schema
            images = found.setdefault((schema.id, schema.version()), (schema, []))[1]
            images.append(_images(logged))
        for table, position, index in self._emptied:
            schema, images = self._beside(table, (position, index), found)
            empty = EmptiedCodec(schema).images((None,))
            images.append(image_table(schema, [position], [index], empty.signs, empty.rows))
        for schema, images in found.values():
            rows = pa.concat_tables(images)
            if (
                len(images) > 1
            ):  # a reader that began anew; the sort keeps a before image in front of its after image
                rows = rows.take(pc.sort_indices(rows, [(POSITION, "ascending"), (INDEX, "ascending")]))
            yield TableData(schema, FileKind.LOG, rows)

    def _beside(self, table: TableId, place: tuple[int, int], found: _Found) -> _Images:
        """The images among which a TRUNCATE is told: those that follow it, else those before it.

        It has no row, and so no row schema of its own: under another one than what follows it, that one would
        seem to have been changed here.
        """
        known = [pair for (name, _), pair in found.items() if name == table]
        following = [pair for pair in known if any(_last_place(images) > place for images in pair[1])]
        if known:
            return (following or known[-1:])[0]
        schema = self._schemas[table]
        return found.setdefault((table, schema.version()), (schema, []))

    def content(
        self,
        checkpoint: Checkpoint,
        ends_transaction: bool,
        begins_batch: bool = False,
        continues: bool = False,
        doubts: tuple[Doubt, ...] = (),
    ) -> SegmentContent:
        """Everything collected, as the content of the next segment; starts anew.

        Raises ``SourceError`` naming a value that the logical type can't hold.
        """
        emptied = {table for table, _, _ in self._emptied}  # of these no dump rows: see the module
        data = [
            TableData(schema, FileKind.CHUNK, pa.concat_tables(chunks))
            for schema, chunks in self._chunks.values()
            if schema.id not in emptied
        ]
        data += self._logged()
        content = SegmentContent(
            checkpoint,
            ends_transaction,
            self.committed_at_us,
            self.transactions,
            self.row_changes,
            tuple(data),
            begins_batch,
            continues,
            doubts,
            self.echo and self.row_changes > 0,
        )
        self._clear()
        return content


def _last_place(images: pa.Table) -> tuple[int, int]:
    """Position and index of the last image."""
    return images[POSITION][-1].as_py(), images[INDEX][-1].as_py()


def _images(logged: _Logged) -> pa.Table:
    """The runs' images laid out as ``image_schema``, decoded in one go. Raises ``SourceError``."""
    counts, positions, firsts = (
        np.array(values, np.int64) for values in (logged.counts, logged.positions, logged.firsts)
    )
    firsts -= np.cumsum(counts) - counts  # so that a change's place among all of them can be added
    places, signs, rows = logged.codec.images(logged.items)
    run_of = np.repeat(np.arange(len(counts)), counts)[places]
    return image_table(logged.codec.schema, positions[run_of], firsts[run_of] + places, signs, rows)
