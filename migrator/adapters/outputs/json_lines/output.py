"""JSON lines into a file that is continued after a stop or kill, or into a stream that isn't."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from migrator.adapters.outputs.json_lines.lines import encode, place_of
from migrator.errors import OutputError
from migrator.ports.output import Held, SegmentEvents, refused

_ANEW = "begin it anew: `migrator events --forget` with the same --output, then give another --output"


class JsonLinesFile:
    """An ``EventOutput`` into a regular file; the mark is the file's size in bytes.

    Everything up to the mark is durable. Lines beyond it were written before a kill: whole ones are kept, and the
    rest is cut off, so that whoever follows the file never sees a line vanish or come twice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1

    def open(self, mark: int | None) -> Held | None:
        """Opens or creates the file and finds its last whole line (see the port)."""
        try:
            if self._path.exists() and not stat.S_ISREG(self._path.stat().st_mode):
                raise OutputError(
                    "the output is no regular file",
                    where=str(self._path),
                    cause="only a regular file can be continued after a stop",
                    remedy="name a file, or use `--output -` and redirect standard output",
                )
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            size = os.fstat(self._handle).st_size
            self._check(mark, size)
            return self._repair(mark or 0, size)
        except OSError as error:
            raise refused("the output can't be opened", self._path, error) from error

    def write(self, events: SegmentEvents) -> None:
        """Appends the events' lines. Raises ``OutputError`` when the disk refuses."""
        try:
            _write_all(self._handle, encode(events))
        except OSError as error:
            raise refused("the output can't be written", self._path, error) from error

    def commit(self, segment: int) -> int:
        """Syncs the file; its size is the mark."""
        try:
            os.fsync(self._handle)
            return os.fstat(self._handle).st_size
        except OSError as error:
            raise refused("the output can't be made durable", self._path, error) from error

    def close(self) -> None:
        """Closes the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def forget(self) -> None:
        """The file is all that there is, and stays."""

    def _check(self, mark: int | None, size: int) -> None:
        if mark is None and size:
            raise OutputError(
                "the output file isn't empty, and not known as an output of this migration",
                where=str(self._path),
                cause=f"it holds {size:,} bytes",
                remedy="choose another --output, or move the file away",
            )
        if mark is not None and size < mark:
            raise OutputError(
                "the output file is shorter than what was written to it",
                where=str(self._path),
                cause=f"it holds {size:,} bytes, {mark:,} were written and made durable",
                remedy=f"put the file back as it was, or {_ANEW}",
            )

    def _repair(self, mark: int, size: int) -> Held | None:
        """Cuts off what follows the last whole line; what that line is."""
        last: tuple[int, int] | None = None
        end = mark
        with os.fdopen(os.dup(self._handle), "rb") as file:
            file.seek(mark)
            for line in file:
                place = place_of(line)
                if place is None or (last is not None and place <= last):
                    break
                last, end = place, end + len(line)
        if end < size:
            os.ftruncate(self._handle, end)
            os.fsync(self._handle)
        if last is None:
            return Held(0, 0, size - end) if end < size else None
        return Held(*last, size - end)


class JsonLinesStream:
    """An ``EventOutput`` into an open descriptor, e.g. standard output. It can't be continued: the mark is 0."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def open(self, mark: int | None) -> Held | None:
        """Nothing is known of what a stream holds."""
        return None

    def write(self, events: SegmentEvents) -> None:
        """Writes the events' lines. Raises ``OutputError``, for instance when nobody reads any more."""
        try:
            _write_all(self._handle, encode(events))
        except OSError as error:
            raise refused("the output can't be written", "standard output", error) from error

    def commit(self, segment: int) -> int:
        """Returns 0: lines that were written are the reader's affair."""
        return 0

    def close(self) -> None:
        """The descriptor stays open: it isn't ours."""

    def forget(self) -> None:
        """Nothing is kept."""


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
