"""Collects the capture core's outputs until they become a segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from migrator.columnar.types import INDEX, POSITION, image_table
from migrator.core.capture import EmitChunk, EmitPart, EmitSchema, Output
from migrator.model.event import ChangeCodec, TransactionPart
from migrator.model.progress import Checkpoint
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


class SegmentBuilder:
    """Outputs of the core since the last segment, per table and row schema.

    Args:
        schemas: row schemas as of the last segment.
    """

    def __init__(self, schemas: dict[TableId, TableSchema]):
        self._schemas = schemas
        self._clear()

    def _clear(self) -> None:
        self._runs: dict[int, _Logged] = {}  # by identity: a codec's hash may be dear
        self._chunks: dict[tuple[TableId, str], tuple[TableSchema, list[Any]]] = {}
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
        found: dict[tuple[TableId, str], tuple[TableSchema, list[pa.Table]]] = {}
        for logged in self._runs.values():
            schema = logged.codec.schema
            images = found.setdefault((schema.id, schema.version()), (schema, []))[1]
            images.append(_images(logged))
        for schema, images in found.values():
            rows = pa.concat_tables(images)
            if (
                len(images) > 1
            ):  # a reader that began anew; the sort keeps a before image in front of its after image
                rows = rows.take(pc.sort_indices(rows, [(POSITION, "ascending"), (INDEX, "ascending")]))
            yield TableData(schema, FileKind.LOG, rows)

    def content(
        self, checkpoint: Checkpoint, ends_transaction: bool, begins_batch: bool = False
    ) -> SegmentContent:
        """Everything collected, as the content of the next segment; starts anew.

        Raises ``SourceError`` naming a value that the logical type can't hold.
        """
        data = [
            TableData(schema, FileKind.CHUNK, pa.concat_tables(chunks))
            for schema, chunks in self._chunks.values()
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
        )
        self._clear()
        return content


def _images(logged: _Logged) -> pa.Table:
    """The runs' images laid out as ``image_schema``, decoded in one go. Raises ``SourceError``."""
    counts, positions, firsts = (
        np.array(values, np.int64) for values in (logged.counts, logged.positions, logged.firsts)
    )
    firsts -= np.cumsum(counts) - counts  # so that a change's place among all of them can be added
    places, signs, rows = logged.codec.images(logged.items)
    run_of = np.repeat(np.arange(len(counts)), counts)[places]
    return image_table(logged.codec.schema, positions[run_of], firsts[run_of] + places, signs, rows)
