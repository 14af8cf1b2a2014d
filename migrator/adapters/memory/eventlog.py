"""The event log in memory. Chunk paths are names that only ``MemoryEventLog.chunk`` understands."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from migrator.columnar.emptied import taken_in
from migrator.columnar.netting import net_images
from migrator.columnar.segment_rows import check_layout
from migrator.columnar.versions import alike, same_key, unite_images
from migrator.errors import EventLogError, FencedError
from migrator.model.segment import FileKind, Link, Manifest, SegmentFile
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import Batch, NetDelta, SegmentContent, fenced, mixed

Step = Callable[[str], None]


@dataclass(slots=True)
class MemoryEventLog:
    """The counterpart of the files adapter's directory: share one between writers and readers.

    Attributes:
        manifests: by number; a test may remove one to play a lost file.
        tables: rows by the path in the manifest; likewise.
        epoch: highest epoch that opened the log for writing.
        released: highest number given up.
    """

    manifests: dict[int, Manifest] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    epoch: int = 0
    released: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def chunk(self, path: str) -> pa.Table:
        """Dump rows of a path in ``Batch.chunks``."""
        with self.changed:
            return self._rows(path)

    def _rows(self, path: str) -> pa.Table:
        if path not in self.tables:
            raise EventLogError(
                "a data file can't be used", where=path, cause="it is missing", remedy="start over"
            )
        return self.tables[path]


class MemorySegmentWriter:
    """A ``SegmentWriter`` on a ``MemoryEventLog``; arguments as for the files adapter's writer."""

    def __init__(
        self,
        log: MemoryEventLog,
        epoch: int,
        *,
        after: int = 0,
        applied: str = "",
        step: Step | None = None,
    ) -> None:
        self._log = log
        self._epoch = epoch
        self._applied = applied
        self._step: Step = step or (lambda name: None)
        self._broken: FencedError | None = None
        with log.changed:
            newest = max(log.manifests, default=0)
            self._last = log.manifests.get(newest)
            if log.epoch > epoch or (self._last is not None and self._last.epoch > epoch):
                raise fenced(epoch, f"the event log was opened under epoch {log.epoch}")
            log.epoch = epoch
            log.released = max(log.released, after if after > newest else 0)
            self._next = max(newest, log.released) + 1

    def last(self) -> Manifest | None:
        """The newest segment; None in an empty event log."""
        return self._last

    def awaited(self) -> bool:
        """Returns True always: it isn't known here."""
        return True

    def total_bytes(self) -> int:
        """Bytes of all rows held."""
        with self._log.changed:
            return sum(rows.nbytes for rows in self._log.tables.values())

    def append(self, content: SegmentContent) -> Manifest:
        """Adds the next segment. Raises ``FencedError`` as the port says."""
        if self._broken is not None:
            raise self._broken
        number = self._next
        files: list[SegmentFile] = []
        rows: dict[str, pa.Table] = {}
        for data in content.data:
            if data.rows.num_rows == 0:
                continue
            check_layout(data.schema, data.kind, data.rows)
            path = f"memory:{number}-{self._epoch}-{len(files)}"
            rows[path] = data.rows
            files.append(
                SegmentFile(
                    data.schema, data.kind, path, data.rows.num_rows, data.rows.nbytes, "", data.rows.nbytes
                )
            )
        manifest = content.manifest(
            number,
            self._epoch,
            tuple(files),
            previous=self._last.id if self._last is not None else self._applied,
            identity=secrets.token_hex(8),  # content isn't looked at: what was written twice is two segments
        )
        self._step("segment.data")
        self._step("segment.synced")
        self._create(manifest, rows)
        self._step("segment.created")
        return manifest

    def _create(self, manifest: Manifest, rows: dict[str, pa.Table]) -> None:
        log = self._log
        with log.changed:
            if log.epoch > self._epoch:
                self._broken = fenced(self._epoch, f"the event log was opened under epoch {log.epoch}")
            elif manifest.number in log.manifests or manifest.number <= log.released:
                self._broken = fenced(self._epoch, f"segment {manifest.number} was created by another leader")
            if self._broken is not None:
                raise self._broken
            log.tables.update(rows)
            log.manifests[manifest.number] = manifest
            log.changed.notify_all()
        self._last = manifest
        self._next = manifest.number + 1


class MemoryBatchReader:
    """A ``BatchReader`` on a ``MemoryEventLog``. With ``timeout_s`` 0 it never waits."""

    def __init__(self, log: MemoryEventLog) -> None:
        self._log = log

    def read(self, after: int, max_rows: int, timeout_s: float) -> Batch | None:
        """The next batch (see the port). Raises ``EventLogError`` for missing segments and rows."""
        log = self._log
        deadline = time.monotonic() + timeout_s if timeout_s > 0 else 0.0
        with log.changed:
            while True:
                if after < log.released:
                    raise _gone(after + 1, f"segments up to {log.released} were released")
                manifests = self._collect(after, max_rows)
                if manifests:
                    return self._batch(manifests)
                left_s = deadline - time.monotonic() if timeout_s > 0 else 0.0
                if left_s <= 0:
                    return None
                log.changed.wait(left_s)

    def release(self, up_to: int) -> None:
        """Forgets segments up to ``up_to`` except the newest."""
        log = self._log
        with log.changed:
            for number in sorted(log.manifests)[:-1]:
                if number <= up_to:
                    log.released = max(log.released, number)
                    for file in log.manifests.pop(number).files:
                        log.tables.pop(file.path, None)

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a segment; None when there is none."""
        with self._log.changed:
            return self._log.manifests.get(number)

    def manifests(self, after: int) -> list[Manifest]:
        """Manifests above ``after`` in order."""
        with self._log.changed:
            return [self._log.manifests[number] for number in sorted(self._log.manifests) if number > after]

    def _collect(self, after: int, max_rows: int) -> list[Manifest]:
        found: list[Manifest] = []
        newest: dict[TableId, TableSchema] = {}
        ready = rows = 0
        for number in sorted(number for number in self._log.manifests if number > after):
            if number != after + len(found) + 1:
                if ready:
                    break
                raise _gone(after + len(found) + 1, f"segment {number} exists")
            manifest = self._log.manifests[number]
            rows += sum(file.rows for file in manifest.files)
            if manifest.begins_batch and found and found[-1].ends_transaction:
                ready = len(found)
            if ready and (rows > max_rows or manifest.begins_batch):
                break
            if not manifest.joins(found):
                if ready:
                    break
                raise mixed(number)
            schemas = [file.schema for file in manifest.files if file.kind is FileKind.LOG]
            if not _extend(newest, schemas, same_key if not ready else alike):
                if not ready:
                    raise _gone(number, "a table changed its key within a transaction")
                break
            found.append(manifest)
            if manifest.ends_transaction and not manifest.continues:
                ready = len(found)
                if rows >= max_rows:
                    break
        return found[:ready]

    def _batch(self, manifests: list[Manifest]) -> Batch:
        files = [file for manifest in manifests for file in manifest.files]
        rows = {file.path: self._log._rows(file.path) for file in files}
        chunks: dict[tuple[TableId, str], list[SegmentFile]] = {}
        images: dict[TableId, list[tuple[TableSchema, Any]]] = {}
        emptied: set[TableId] = set()
        for file in files:
            if file.kind is FileKind.CHUNK:
                chunks.setdefault((file.schema.id, file.schema.version()), []).append(file)
            else:
                if taken_in(file.schema, rows[file.path], images, chunks):
                    emptied.add(file.schema.id)
        united = [unite_images(parts) for parts in images.values()]
        dumped = {table for table, _ in chunks}
        return Batch(
            first=manifests[0].number,
            last=manifests[-1].number,
            checkpoint=manifests[-1].checkpoint,
            committed_at_us=next((m.committed_at_us for m in reversed(manifests) if m.committed_at_us), 0),
            transactions=sum(manifest.transactions for manifest in manifests),
            row_changes=sum(manifest.row_changes for manifest in manifests),
            chunk_rows=sum(file.rows for same in chunks.values() for file in same),
            chunks=tuple(
                (same[0].schema, tuple(file.path for file in same), sum(file.rows for file in same))
                for same in chunks.values()
            ),
            deltas=tuple(
                NetDelta(schema, *net_images(schema, table, schema.id in dumped), schema.id in emptied)
                for schema, table in united
            ),
            doubts=tuple(doubt for manifest in manifests for doubt in manifest.doubts),
            link=Link(manifests[0].number, manifests[0].previous, manifests[-1].id),
            echo=any(manifest.echo for manifest in manifests),
        )


class MemoryRoom:
    """An ``EventLogRoom`` on a ``MemoryEventLog``. ``free`` and ``disk`` are whatever a test says, in bytes."""

    def __init__(self, log: MemoryEventLog, disk: int = 1 << 40) -> None:
        self._log = log
        self.disk = self.free = disk

    def used_bytes(self) -> int:
        """Bytes of all rows held."""
        with self._log.changed:
            return sum(rows.nbytes for rows in self._log.tables.values())

    def free_bytes(self) -> int:
        """See the port."""
        return self.free

    def disk_bytes(self) -> int:
        """See the port."""
        return self.disk

    def may_shrink(self) -> bool:
        """See the port."""
        with self._log.changed:
            manifests = self._log.manifests
            complete = max((n for n, manifest in manifests.items() if manifest.ends_transaction), default=0)
            return any(number < complete for number in manifests)

    def kept_by(self) -> tuple[str, ...]:
        """See the port."""
        return ()


def _extend(
    newest: dict[TableId, TableSchema],
    schemas: list[TableSchema],
    fits: Callable[[TableSchema, TableSchema], bool],
) -> bool:
    for schema in schemas:
        if schema.id in newest and not fits(schema, newest[schema.id]):
            return False
        newest[schema.id] = schema
    return True


def _gone(number: int, cause: str) -> EventLogError:
    return EventLogError(
        f"segment {number} can't be read", where=f"segment {number}", cause=cause, remedy="start over"
    )
