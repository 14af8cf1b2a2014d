"""Collects the capture core's outputs until they become a segment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from migrator.columnar.text import images_to_table
from migrator.core.capture import EmitChunk, EmitPart, EmitSchema, Output
from migrator.model.event import Row
from migrator.model.progress import Checkpoint
from migrator.model.segment import FileKind
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import SegmentContent, TableData


@dataclass(slots=True)
class _Images:
    """Row images of one table and schema, in log order."""

    schema: TableSchema
    positions: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add(self, position: int, index: int, sign: int, row: Row) -> None:
        self.positions.append(position)
        self.indexes.append(index)
        self.signs.append(sign)
        self.rows.append(row)


class SegmentBuilder:
    """Outputs of the core since the last segment, per table and row schema.

    Args:
        schemas: row schemas as of the last segment.
    """

    def __init__(self, schemas: dict[TableId, TableSchema]):
        self._schemas = schemas
        self._clear()

    def _clear(self) -> None:
        self._images: dict[tuple[TableId, str], _Images] = {}
        self._open: dict[TableId, _Images] = {}
        self._chunks: dict[tuple[TableId, str], tuple[TableSchema, list[Any]]] = {}
        self.rows = 0
        self.row_changes = 0
        self.transactions = 0
        self.chunk_rows = 0
        self.committed_at_us = 0

    def add(self, output: Output) -> None:
        """Takes the next output."""
        match output:
            case EmitSchema():
                self._schemas[output.schema.id] = output.schema
                self._open.pop(output.schema.id, None)
            case EmitChunk():
                self._add_chunk(output)
            case EmitPart():
                self._add_part(output)

    def _add_chunk(self, output: EmitChunk) -> None:
        schema = self._schemas[output.chunk.request.table]
        if output.kept_rows:
            self._chunks.setdefault((schema.id, schema.version()), (schema, []))[1].append(output.rows)
        self.rows += output.kept_rows
        self.chunk_rows += output.kept_rows

    def _add_part(self, output: EmitPart) -> None:
        part = output.part
        for index, change in enumerate(part.changes, part.first_index):
            images = self._open.get(change.table) or self._opened(change.table)
            if change.before is not None:
                images.add(part.position.order, index, -1, change.before)
            if change.after is not None:
                images.add(part.position.order, index, 1, change.after)
        self.rows += len(part.changes)
        self.row_changes += len(part.changes)
        if part.last:
            self.transactions += 1
            self.committed_at_us = part.committed_at_us

    def _opened(self, table: TableId) -> _Images:
        """Where the table's images go from here on. A schema's digest is too dear to be made for every change."""
        schema = self._schemas[table]
        images = self._images.setdefault((table, schema.version()), _Images(schema))
        self._open[table] = images
        return images

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
        data += [
            TableData(
                images.schema,
                FileKind.LOG,
                images_to_table(images.schema, images.positions, images.indexes, images.signs, images.rows),
            )
            for images in self._images.values()
        ]
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
