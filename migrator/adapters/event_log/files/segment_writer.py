"""Appends segments to an event log directory.

Order of one append: data files and the manifest under a temporary name; fsync of them all and of the data
directory; then ``link`` of the manifest to its number (fails if it exists) and fsync of the segments
directory. A crash before the link leaves files that mean nothing; after it the segment is complete. That is
two rounds of fsync a segment, however many tables it holds: those of one round run at once and share a
journal commit.

Why a stale leader can do no harm. Numbers are taken by ``link``, so of two writers only one gets a number and
the other is fenced for good. Opening the log raises ``epoch``, which an older writer meets at its next append
even before a number is taken. Two more interleavings need care:

* Old leader L1 has written its data for segment 42 and stands still; L2 opens the log. If L2 now removed L1's
  files as orphans, L1 could wake up and create manifest 42 without data. So files are removed only once their
  number is taken: then nobody can create it any more.
* L1 stands still so long that L2's segment 42 was applied and released. The number is free again, L1's
  ``link`` succeeds. But ``released`` was raised to 42 before manifest 42 was removed, so L1 sees it after its
  link, takes the manifest back and is fenced. No reader looks below ``released``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.disk_use import DiskUse
from migrator.adapters.event_log.files.fresh_segments import FreshSegments
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import (
    encode_manifest,
    newest_manifest,
    read_manifest,
)
from migrator.adapters.event_log.files.parquet import encode_rows
from migrator.columnar.segment_rows import check_layout
from migrator.errors import DamageError, EventLogError, FencedError
from migrator.model.segment import Manifest, SegmentFile
from migrator.ports.eventlog import SegmentContent, fenced

Step = Callable[[str], None]
_SYNC_THREADS = 8


class FileSegmentWriter:
    """A ``SegmentWriter`` on a directory. One thread uses it.

    Args:
        directory: of the event log; created when missing.
        epoch: of the lease under which this process writes.
        after: segment number of the target's ledger. Numbering never falls to or below it, even if the
            directory was lost; then what lies below counts as released.
        applied: ``Manifest.id`` of the ledger's segment, for a log that begins behind it.
        fresh: told of every new segment, and asked whether one is awaited.
        step: called with ``segment.file`` (one data file written), ``segment.data`` (all of them),
            ``segment.synced`` (data durable) and ``segment.created`` (segment durable and visible); what it raises
            acts like a crash at that point.

    Raises ``FencedError`` when a higher epoch wrote or opened the log, ``EventLogError`` when the directory
    can't be used or its newest manifest is damaged.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        epoch: int,
        *,
        after: int = 0,
        applied: str = "",
        fresh: FreshSegments | None = None,
        step: Step | None = None,
    ) -> None:
        self._layout = Layout.of(directory)
        self._epoch = epoch
        self._fresh = fresh
        self._step: Step = step or (lambda name: None)
        self._broken: EventLogError | FencedError | None = None
        self._leftovers = True
        self._threads = ThreadPoolExecutor(max_workers=_SYNC_THREADS, thread_name_prefix="sync")
        self._disk_use = DiskUse(self._layout)
        try:
            self._open(after, applied)
        except OSError as error:
            raise durable.disk_refused(
                "the event log can't be opened", self._layout.directory, error
            ) from error

    def last(self) -> Manifest | None:
        """The newest segment, its manifest checked; None in an empty event log."""
        return self._last

    def total_bytes(self) -> int:
        """Bytes that the event log takes on disk, for backpressure; at most half a second old."""
        return self._disk_use.total_bytes()

    def append(self, content: SegmentContent) -> Manifest:
        """Writes the segment of the next number; durable and visible on return.

        Raises ``FencedError`` when that number was created by another leader or a higher epoch opened the
        log: this writer is of no use any more. Raises ``EventLogError`` when the disk refuses; after that
        nothing of the segment is visible and append may be tried again, unless the error says otherwise.
        """
        if self._broken is not None:
            raise self._broken
        number = self._next
        written: list[Path] = []
        try:
            self._remove_leftovers()
            manifest = self._write(number, content, written)
            self._step("segment.synced")
            self._check_epoch()
            self._check_created(number, durable.link_new(written[-1], self._layout.manifest(number)))
        except OSError as error:
            raise self._refused(number, written, error) from error
        except (FencedError, EventLogError) as error:
            self._remove(written)
            if isinstance(error, FencedError):
                self._broken = error
            raise
        return self._created(manifest, content)

    def _open(self, after: int, applied: str) -> None:
        layout = self._layout
        durable.make_directory(layout.segments)
        durable.make_directory(layout.data)
        self._last = newest_manifest(layout)
        if self._last is not None and self._last.epoch > self._epoch:
            raise fenced(self._epoch, f"segment {self._last.number} has epoch {self._last.epoch}")
        durable.raise_number(layout.epoch, self._epoch)
        self._check_epoch()
        newest = self._last.number if self._last else 0
        self._previous = self._last.id if self._last else applied
        released = durable.raise_number(layout.released, after if after > newest else 0)
        self._opened_at = newest
        self._next = max(newest, released) + 1
        for epoch, path in layout.temporaries():
            if epoch < self._epoch:
                path.unlink(missing_ok=True)
        self._remove_orphans()

    def _write(self, number: int, content: SegmentContent, written: list[Path]) -> Manifest:
        """Writes data files and, under a temporary name, the manifest, and syncs them.

        ``written`` receives the paths, the manifest last, also when an error interrupts.
        """
        with contextlib.ExitStack() as opened:
            handles: list[int] = []

            def write(path: Path, handle: int, raw: memoryview) -> None:
                opened.callback(os.close, handle)
                handles.append(handle)
                written.append(path)
                durable.write_all(handle, raw)

            files: list[SegmentFile] = []
            for data in content.data:
                if data.rows.num_rows:
                    check_layout(data.schema, data.kind, data.rows)
                    buffer = encode_rows(data.rows)
                    path, handle = self._new_data_file(number, len(files))
                    write(path, handle, memoryview(buffer))
                    digest = hashlib.sha256(buffer).hexdigest()
                    size = (data.rows.num_rows, buffer.size, digest, data.rows.nbytes)
                    files.append(SegmentFile(data.schema, data.kind, str(path), *size))
                    self._step("segment.file")
            self._step("segment.data")
            manifest = content.manifest(number, self._epoch, tuple(files), self._previous)
            encoded, identity = encode_manifest(self._layout, manifest)
            temporary = self._layout.temporary(number, self._epoch, secrets.token_hex(4))
            write(temporary, durable.open_new(temporary), memoryview(encoded))
            if files:
                directory = os.open(self._layout.data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                opened.callback(os.close, directory)
                handles.append(directory)
            durable.sync_all(handles, self._threads)
        return replace(manifest, id=identity)

    def _new_data_file(self, number: int, place: int) -> tuple[Path, int]:
        """A new file. The plain name is taken when an earlier attempt under this epoch crashed."""
        while True:
            path = self._layout.data_file(number, self._epoch, place)
            try:
                return path, durable.open_new(path)
            except FileExistsError:
                place += 1000

    def _check_epoch(self) -> None:
        highest = durable.read_number(self._layout.epoch)
        if highest > self._epoch:
            raise fenced(self._epoch, f"the event log was opened under epoch {highest}")

    def _check_created(self, number: int, created: bool) -> None:
        if created and durable.read_number(self._layout.released) < number:
            return
        if created:
            self._layout.manifest(number).unlink()
            raise fenced(self._epoch, f"segment {number} was written and released by another leader long ago")
        other = read_manifest(self._layout, number)
        raise fenced(self._epoch, f"segment {number} was created under epoch {other.epoch if other else '?'}")

    def awaited(self) -> bool:
        """Tells whether a reader in this process has read all there is; True where that isn't known."""
        return self._fresh is None or self._fresh.awaited()

    def _created(self, manifest: Manifest, content: SegmentContent) -> Manifest:
        self._last, self._previous = manifest, manifest.id
        self._next = manifest.number + 1
        self._disk_use.add(sum(file.size_bytes for file in manifest.files))
        if self._fresh is not None:
            self._fresh.announce(manifest, tuple(data for data in content.data if data.rows.num_rows))
        self._step("segment.created")
        return manifest

    def _refused(self, number: int, written: list[Path], error: OSError) -> EventLogError | FencedError:
        """Cleans up after the disk refused, and says what it was."""
        path = self._layout.manifest(number)
        if os.path.exists(path):
            # the name is visible, its durability unknown, and a reader may be at it: neither take it back nor
            # go on
            what = f"segment {number} was created, but may not survive a power cut"
            self._broken = durable.disk_refused(what, path, error)
            return self._broken
        self._remove(written)
        try:
            self._check_epoch()  # a newer leader removes our temporary file: then that is the cause
        except FencedError as fenced:
            self._broken = fenced
            return fenced
        return durable.disk_refused(f"segment {number} can't be written", self._layout.directory, error)

    def _remove_leftovers(self) -> None:
        """Removes what earlier writers left for the first number that this writer has taken since."""
        if self._leftovers and self._last is not None and self._last.number > self._opened_at:
            self._remove_orphans()
            self._leftovers = False

    def _remove_orphans(self) -> None:
        """Removes data files of taken or released numbers that no manifest names (why: see the module)."""
        released = durable.read_number(self._layout.released)
        named: dict[int, set[str] | None] = {}
        orphans = []
        for number, path in self._layout.data_files():
            if number not in named:
                named[number] = self._named(number)
            known = named[number]
            # a missing manifest above ``released`` is damage for the reader to report: keep what could repair
            # it
            if (known is not None and str(path) not in known) or (known is None and number <= released):
                orphans.append(path)
        for path in orphans:
            path.unlink(missing_ok=True)

    def _named(self, number: int) -> set[str] | None:
        """Paths of the data files that a manifest names; None without a manifest that can be read."""
        try:
            manifest = read_manifest(self._layout, number)
        except DamageError:
            return None  # for the reader to report, when it comes that far
        return {file.path for file in manifest.files} if manifest else None

    def _remove(self, paths: list[Path]) -> None:
        for path in paths:
            with contextlib.suppress(
                OSError
            ):  # without a manifest it is nothing; the next writer tries again
                path.unlink(missing_ok=True)
