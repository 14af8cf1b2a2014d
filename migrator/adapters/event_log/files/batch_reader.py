"""Reads batches from an event log directory, beside the writer, in the same process or another.

A batch is found from the manifests alone; then every data file is checked against its SHA-256 (1.5 GB/s a
core: a twentieth of the time Spark takes to read it), except for log images that a writer in the same process has
handed over; log images are netted per table, chunk files are left to Spark.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from collections.abc import Sequence as Numbers

import pyarrow as pa

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.disk_use import DiskUse
from migrator.adapters.event_log.files.fresh_segments import FreshSegments
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import START_OVER, read_manifest
from migrator.adapters.event_log.files.parquet import decode_rows, read_checked
from migrator.adapters.event_log.files.places import first_needed
from migrator.adapters.event_log.files.sequence import Sequence
from migrator.columnar.emptied import taken_in
from migrator.columnar.netting import net_images
from migrator.columnar.versions import alike, same_key, unite_images
from migrator.errors import DamageError, EventLogError
from migrator.model.lineage import follows
from migrator.model.segment import FileKind, Link, Manifest, SegmentFile
from migrator.model.table import TableId, TableSchema
from migrator.ports.eventlog import Batch, NetDelta, mixed

_RESTORED = (
    "was the target restored from a backup? Then move the event log's directory away and start again: capture goes "
    "on from the target's ledger if the source still holds its log from there, else it names what is missing"
)
_NOTHING_APPLIED = (
    "put the ledger's row back as a backup of the target has it; else start the migration anew"
    " (docs/how-to/start-anew.md): a dump over rows that the target has already would leave those that are"
    " gone from the source"
)


class FileBatchReader:
    """A ``BatchReader`` on a directory. One thread reads, another may release.

    Args:
        directory: of the event log; may not exist yet.
        max_bytes: a batch grows no further than this (rows in memory) unless one transaction is larger.
        fresh: shared with a writer in the same process; without it the directory is polled every 2 to 20 ms.
        keep_bytes: the newest of the segments that may go stay up to this size, until room is needed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_bytes: int = 256 << 20,
        fresh: FreshSegments | None = None,
        keep_bytes: int = 0,
    ) -> None:
        self._layout = Layout.of(directory)
        self._disk_use = DiskUse(self._layout)
        self._max_bytes, self._keep_bytes = max_bytes, keep_bytes
        self._fresh = fresh or FreshSegments()
        self._sequence = Sequence(self._layout, fresh)
        self._applied = 0

    def read(self, after: int, max_rows: int, timeout_s: float) -> Batch | None:
        """The next batch after segment ``after`` (see the port).

        Waits up to ``timeout_s`` for a complete transaction. Raises ``DamageError`` naming the segment and
        file that is missing, torn or corrupt, once everything before it was read; ``EventLogError`` for one
        that was released although the target doesn't hold it.
        """
        deadline = time.monotonic() + timeout_s
        remedy = _RESTORED if after else _NOTHING_APPLIED
        self._sequence.check_released(after, f"the target's ledger stands at segment {after}", remedy)
        self._sequence.forget(after)
        self._fresh.forget(after)
        while True:
            manifests, end = self._collect(after, max_rows)
            if manifests:
                batch = self._intact(manifests)
                self._fresh.taken(batch.last)
                return batch
            self._sequence.check_gap(end + 1)
            if not self._sequence.wait(end + 1, deadline):
                return None

    def release(self, up_to: int) -> None:
        """Deletes segments up to ``up_to`` except the newest, and those that another reader still needs.

        Crash-safe: ``released`` is raised durably first, and nobody looks at what lies below it, so the removals
        need no fsync. Manifests go before data all the same: somebody may be listing them. What a crash leaves is
        removed by the next release or writer.
        """
        self._release(up_to, self._keep_bytes)

    def _release(self, up_to: int, keep_bytes: int) -> None:
        self._applied = max(self._applied, up_to)
        numbers = self._layout.numbers()
        needed = first_needed(self._layout)
        doomed = [n for n in numbers[:-1] if n <= up_to and (needed is None or n < needed)]
        if keep_bytes:
            doomed = doomed[: len(doomed) - self._newest(doomed, keep_bytes)]
        if not doomed:
            return
        try:
            released = durable.raise_number(self._layout.released, doomed[-1])
            for number in doomed:
                self._layout.manifest(number).unlink(missing_ok=True)
            for number, path in self._layout.data_files():
                if number <= released and number < numbers[-1]:
                    path.unlink(missing_ok=True)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return  # others filled the disk: applied segments stay, until the next release
            raise durable.disk_refused(
                f"segments up to {up_to} can't be released", self._layout.directory, error
            ) from error

    def release_again(self) -> None:
        """Releases what another reader still needed when it was last asked to, and no longer does; and what was kept
        though nobody needs it."""
        self._release(self._applied, 0)

    def _newest(self, numbers: Numbers[int], most_bytes: int) -> int:
        """Counts the segments at the end of a list that take so many bytes at most together."""
        sizes = dict.fromkeys(numbers, 0)
        for number, path in self._layout.data_files():
            if number in sizes:
                sizes[number] += path.stat().st_size
        kept = total = 0
        for number in reversed(numbers):
            total += sizes[number] + self._layout.manifest(number).stat().st_size
            if total > most_bytes:
                break
            kept += 1
        return kept

    def applied(self) -> int:
        """The highest segment that ``release`` was ever told of: the target holds everything up to it."""
        return self._applied

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a segment (see the port). Raises ``EventLogError``."""
        return read_manifest(self._layout, number)

    def manifests(self, after: int) -> Iterator[Manifest]:
        """Manifests above ``after`` in order, for status. Raises ``EventLogError`` for a damaged or missing one."""
        number = after
        while True:
            number = max(number, durable.read_number(self._layout.released))
            while (manifest := read_manifest(self._layout, number + 1)) is not None:
                number += 1
                yield manifest
            if durable.read_number(self._layout.released) <= number:  # else released while we looked
                break
        self._sequence.check_gap(number + 1)

    def total_bytes(self) -> int:
        """Bytes that the event log takes on disk, for backpressure; at most half a second old."""
        return self._disk_use.total_bytes()

    def _collect(self, after: int, max_rows: int) -> tuple[list[Manifest], int]:
        """Manifests of the next batch (none: not complete yet), and the last number seen."""
        found: list[Manifest] = []
        schemas: dict[TableId, TableSchema] = {}
        ready = rows = size_bytes = 0
        number = after
        while (manifest := self._next(number + 1, ready)) is not None:
            number += 1
            rows += sum(file.rows for file in manifest.files)
            size_bytes += sum(max(file.size_bytes, file.held_bytes) for file in manifest.files)
            if manifest.begins_batch and found and found[-1].ends_transaction:
                ready = len(found)  # whatever was to follow those before it never came: its leader is gone
            if ready and (manifest.begins_batch or rows > max_rows or size_bytes > self._max_bytes):
                break
            self._check_follows(found, manifest)
            if not manifest.joins(found):
                if ready:
                    break
                raise mixed(manifest.number)
            if not _admit(schemas, manifest, at_any_price=not ready):
                break
            found.append(manifest)
            if manifest.ends_transaction and not manifest.continues:
                ready = len(found)
                if rows >= max_rows or size_bytes >= self._max_bytes:
                    break
        return found[:ready], number

    def _next(self, number: int, ready: int) -> Manifest | None:
        """The manifest of a number; a damaged one ends a batch that holds whole transactions already."""
        try:
            return self._sequence.manifest(number)
        except DamageError:
            if ready:
                return None
            raise

    def _intact(self, manifests: list[Manifest]) -> Batch:
        """The batch, or as much of it as lies before a damaged segment. Raises ``DamageError`` if that is nothing.

        The target is to come as far as the log is good: from there it has to be captured again.
        """
        try:
            return self._batch(manifests)
        except DamageError:
            good = self._before_damage(manifests)
            if not good:
                raise
            return self._batch(good)

    @staticmethod
    def _before_damage(manifests: list[Manifest]) -> list[Manifest]:
        """The first of these segments, up to the last transaction that ends before a damaged one."""
        ready = 0
        for place, manifest in enumerate(manifests, 1):
            try:
                for file in manifest.files:
                    content = read_checked(file, manifest.number)
                    if file.kind is FileKind.LOG:
                        decode_rows(file, content, manifest.number)
            except DamageError:
                break
            if manifest.ends_transaction:
                ready = place
        return manifests[:ready]

    def _batch(self, manifests: list[Manifest]) -> Batch:
        last = manifests[-1]
        chunks: dict[tuple[TableId, str], tuple[TableSchema, list[str], int]] = {}
        images: dict[TableId, list[tuple[TableSchema, pa.Table]]] = {}
        emptied: set[TableId] = set()
        for manifest in manifests:
            for file in manifest.files:
                if file.kind is FileKind.LOG:
                    if taken_in(file.schema, self._rows(file, manifest.number), images, chunks):
                        emptied.add(file.schema.id)
                    continue
                read_checked(file, manifest.number)
                key = (file.schema.id, file.schema.version())
                _, paths, count = chunks.get(key, (file.schema, [], 0))
                chunks[key] = (file.schema, [*paths, file.path], count + file.rows)
        return Batch(
            first=manifests[0].number,
            last=last.number,
            checkpoint=last.checkpoint,
            committed_at_us=next((m.committed_at_us for m in reversed(manifests) if m.committed_at_us), 0),
            transactions=sum(manifest.transactions for manifest in manifests),
            row_changes=sum(manifest.row_changes for manifest in manifests),
            chunk_rows=sum(rows for _, _, rows in chunks.values()),
            chunks=tuple((schema, tuple(paths), rows) for schema, paths, rows in chunks.values()),
            deltas=tuple(
                _net(parts, {table for table, _ in chunks}, emptied=table in emptied)
                for table, parts in images.items()
            ),
            doubts=tuple(doubt for manifest in manifests for doubt in manifest.doubts),
            link=Link(manifests[0].number, manifests[0].previous, last.id),
            echo=any(manifest.echo for manifest in manifests),
        )

    def _rows(self, file: SegmentFile, segment: int) -> pa.Table:
        """The images of a log file, as they were handed over or decoded. Raises ``DamageError``."""
        held = self._fresh.rows(file, segment)
        return decode_rows(file, read_checked(file, segment), segment) if held is None else held

    def _check_follows(self, found: list[Manifest], manifest: Manifest) -> None:
        if found and manifest.epoch < found[-1].epoch:
            raise EventLogError(
                f"segment {manifest.number} was written by a leader that had been replaced",
                where=str(self._layout.manifest(manifest.number)),
                cause=f"its epoch is {manifest.epoch}, that of the segment before is {found[-1].epoch}",
                remedy=START_OVER,
            )
        if found and not follows(found[-1], manifest):
            raise EventLogError(
                f"segment {manifest.number} was written behind another segment than the one before it",
                where=str(self._layout.manifest(manifest.number)),
                cause="the folder holds segments of two event logs: they were copied together",
                remedy=START_OVER,
            )


def _admit(newest: dict[TableId, TableSchema], manifest: Manifest, at_any_price: bool) -> bool:
    """Tells whether the segment's log images should be netted with those before; notes the newest schema per table.

    A batch ends where columns change, so that none is left out (see ``unite_images``); but not within a transaction.
    Raises ``EventLogError`` where nothing is left but to net rows of different keys.
    """
    for file in manifest.files:
        if file.kind is FileKind.LOG:
            before = newest.get(file.schema.id)
            if before is not None and not alike(file.schema, before):
                if not at_any_price:
                    return False
                if not same_key(file.schema, before):
                    raise _schema_break(manifest)
            newest[file.schema.id] = file.schema
    return True


def _schema_break(manifest: Manifest) -> EventLogError:
    tables = ", ".join(sorted({str(file.schema.id) for file in manifest.files if file.kind is FileKind.LOG}))
    return EventLogError(
        f"a table changed its key within one transaction of segment {manifest.number}",
        where=tables,
        cause="rows before and after the change are told apart by different values",
        remedy="restart the dump of these tables",
    )


def _net(parts: list[tuple[TableSchema, pa.Table]], dumped: set[TableId], emptied: bool) -> NetDelta:
    schema, images = unite_images(parts)
    return NetDelta(schema, *net_images(schema, images, every_before=schema.id in dumped), emptied=emptied)
