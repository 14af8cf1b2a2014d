"""The log of runs: a line for each event, in files that follow each other and are bounded."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from migrator.model.observed.happening import Happening
from migrator.model.observed.printable import printable

NAME = "run.log"
KEPT = 5
"""Files that are kept beside the one that is written."""
TEXT, JSON = "text", "json"
_TRIES, _BETWEEN_S = 20, 0.005
"""Another process that writes is waited for so often: it writes a line, unless it was halted amid one."""
_PIECE_BYTES = 64 << 10


class RunLog:
    """Appends events to ``run.log`` of a folder. What can't be written is left out: a run doesn't end by it.

    Args:
        folder: the state folder.
        form: ``text`` or ``json``.
        most_bytes: of a file; the next event begins another one.
        migration: its name.
    """

    def __init__(self, folder: Path, form: str, most_bytes: int, migration: str):
        self._path = folder / NAME
        self._form, self._most_bytes, self._migration = form, most_bytes, migration
        self._lock = threading.Lock()

    def __call__(self, at_us: int, one: Happening) -> None:
        """Writes one event."""
        line = self._line(at_us, one).encode("utf-8", "replace") + b"\n"
        with self._lock, suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                if self._path.exists() and self._path.stat().st_size + len(line) > self._most_bytes:
                    self._turn()
                self._append(line)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps other processes of the machine from the files; one that stands still is passed over."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for _ in range(_TRIES):
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(_BETWEEN_S)
                except OSError:
                    break  # a file system without locks of folders
            yield
        finally:
            os.close(folder)

    def _append(self, line: bytes) -> None:
        """Adds a whole line, or none: what a full disk, or a kill, has left of one goes."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                size = _whole(handle, size)
                os.ftruncate(handle, size)
            if os.write(handle, line) < len(line):
                os.ftruncate(handle, size)
        finally:
            os.close(handle)

    def _turn(self) -> None:
        """Moves each file on by one, up to the first number that is free: a kill amid it costs no file."""
        names = [self._path, *(self._path.with_name(f"{NAME}.{number}") for number in range(1, KEPT + 1))]
        free = next((number for number, path in enumerate(names) if not path.exists()), KEPT)
        for number in range(free, 0, -1):
            names[number - 1].replace(names[number])

    def _line(self, at_us: int, one: Happening) -> str:
        at = iso(at_us)
        if self._form == JSON:
            return _on_a_line(json.dumps(document(self._migration, at_us, one), ensure_ascii=False))
        about = f" [{one.about}]" if one.about else ""
        return f"{at} {one.level:<7} {os.getpid()} {printable(f'{one.event}{about} {one.words}')}"


def _on_a_line(text: str) -> str:
    """JSON with JSON's own escapes for whatever doesn't print; JSON itself lets line ends of Unicode stand."""
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _whole(handle: int, size: int) -> int:
    """The bytes up to the end of the last whole line."""
    while size:
        start = max(0, size - _PIECE_BYTES)
        end = os.pread(handle, size - start, start).rfind(b"\n")
        if end >= 0:
            return start + end + 1
        size = start
    return 0


def iso(at_us: int) -> str:
    """A moment as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def document(migration: str, at_us: int, one: Happening) -> dict[str, object]:
    """An event as JSON: a line of the log, and what a hook is told."""
    return {
        "at": iso(at_us),
        "level": one.level,
        "event": one.event,
        "about": encodable(one.about),
        "words": encodable(one.words),
        "migration": migration,
        "process": os.getpid(),
    }


def encodable(text: str) -> str:
    """The text without halves of characters, which no UTF-8 can have."""
    return text.encode("utf-8", "replace").decode("utf-8")
