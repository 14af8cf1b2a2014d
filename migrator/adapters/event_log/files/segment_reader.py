"""Reads whole segments for outputs other than the target, each at its own pace."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.parquet import decode_rows, read_checked
from migrator.adapters.event_log.files.places import (
    StoredPlace,
    lock_path,
    read_place,
    write_place,
)
from migrator.adapters.event_log.files.sequence import Sequence
from migrator.errors import EventLogError
from migrator.model.segment import Manifest
from migrator.ports.eventlog import ReaderPlace, Segment, TableData

_TOO_LATE = (
    "begin with --from-segment at a segment that is still there (what came before is then missing), or begin "
    "with the next migration: an output that is started before `migrator run` misses nothing"
)


class FileSegmentReader:
    """A ``SegmentReader`` on a directory. One thread uses it.

    Args:
        directory: of the event log; created when missing, so that a reader may be there first.
        output: what the reader writes to; its place is filed under this name.
        passing: whether the place is worth nothing once the process has ended (see ``places``).

    Raises ``EventLogError`` when the directory can't be used or another process reads for this output now.
    """

    def __init__(self, directory: str | os.PathLike[str], output: str, *, passing: bool = False) -> None:
        self._layout = Layout.of(directory)
        self._output = output
        self._passing = passing
        self._sequence = Sequence(self._layout)
        self._path = self._layout.readers / f"{_file_name(output)}.json"
        try:
            durable.make_directory(self._layout.readers)
            self._lock = os.open(
                lock_path(self._path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, durable.FILE_MODE
            )
        except OSError as error:
            raise durable.disk_refused(
                "the event log can't be opened", self._layout.directory, error
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise EventLogError(
                "another process writes this output now",
                where=output,
                cause=f"it holds the lock {lock_path(self._path)}",
                remedy="stop that one first, or choose another --output",
            ) from error

    def place(self) -> ReaderPlace | None:
        """Reads where this reader stands (see the port). Raises ``EventLogError`` for a damaged file."""
        stored = read_place(self._path)
        return stored.place if stored is not None else None

    def store(self, place: ReaderPlace) -> None:
        """Makes the place durable (see the port). Raises ``EventLogError`` when the disk refuses."""
        try:
            write_place(self._path, StoredPlace(self._output, self._passing, place))
        except OSError as error:
            raise durable.disk_refused("the place of an output can't be stored", self._path, error) from error

    def forget(self) -> bool:
        """Removes the place, so that nothing is kept for it any more; whether there was one."""
        known = self._path.exists()
        self._path.unlink(missing_ok=True)
        return known

    def read_segment(self, after: int, timeout_s: float) -> Segment | None:
        """The segment after number ``after`` (see the port)."""
        self._sequence.forget(after)
        deadline = time.monotonic() + timeout_s
        while True:
            self._check_released(after)
            manifest = self._sequence.manifest(after + 1)
            if manifest is not None:
                return self._rows(manifest)
            self._sequence.check_gap(after + 1)
            self._check_end(after)
            if not self._sequence.wait(after + 1, deadline):
                return None

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a segment; None when there is none (any more)."""
        return self._sequence.manifest(number)

    def beside(self, suffix: str) -> Path:
        """A file beside the place, for what the output itself keeps."""
        return self._path.with_suffix(f".{suffix}")

    def close(self) -> None:
        """Gives the name free; a passing reader's place is removed."""
        if self._passing:
            self.forget()
            with suppress(FileNotFoundError):
                lock_path(self._path).unlink()
        os.close(self._lock)

    def _rows(self, manifest: Manifest) -> Segment:
        try:
            data = []
            for file in manifest.files:
                content = read_checked(file, manifest.number)
                data.append(TableData(file.schema, file.kind, decode_rows(file, content, manifest.number)))
        except EventLogError:
            self._check_released(manifest.number - 1)  # released while we read: then that is the cause
            raise
        return Segment(manifest, tuple(data))

    def _check_released(self, after: int) -> None:
        self._sequence.check_released(after, f"this output needs segment {after + 1} next", _TOO_LATE)

    def _check_end(self, after: int) -> None:
        newest = max(self._layout.numbers(), default=0)
        if after > newest:
            raise EventLogError(
                f"the event log holds no segment {after}",
                where=str(self._layout.segments),
                cause=f"its newest segment is {newest}" if newest else "it holds no segment at all",
                remedy="give a lower --from-segment; if the event log was moved away and begun anew, begin this "
                "output anew too",
            )


def _file_name(output: str) -> str:
    """A name that is safe in any directory, and tells people which output it is."""
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", output.rpartition("/")[2])[:40]
    return f"{readable}-{hashlib.sha256(output.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
