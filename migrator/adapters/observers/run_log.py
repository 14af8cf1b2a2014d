"""The log of runs: a line for each event, in files that follow each other and are bounded."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from migrator.model.observed.happening import Happening
from migrator.model.observed.printable import printable

NAME = "run.log"
KEPT = 5
"""Files that are kept beside the one that is written."""
TEXT, JSON = "text", "json"


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
            if self._path.exists() and self._path.stat().st_size + len(line) > self._most_bytes:
                self._turn()
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(handle, line)  # whole lines: two processes of a machine may write the same file
            finally:
                os.close(handle)

    def _turn(self) -> None:
        for number in range(KEPT, 0, -1):
            older = self._path.with_name(f"{NAME}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{NAME}.{number - 1}")
            with suppress(FileNotFoundError):
                newer.replace(older)

    def _line(self, at_us: int, one: Happening) -> str:
        at = iso(at_us)
        if self._form == JSON:
            return json.dumps(document(self._migration, at_us, one), ensure_ascii=False)
        about = f" [{one.about}]" if one.about else ""
        return f"{at} {one.level:<7} {os.getpid()} {printable(f'{one.event}{about} {one.words}')}"


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
