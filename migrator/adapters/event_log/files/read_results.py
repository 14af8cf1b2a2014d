"""Results of dual reads in the state folder, for the gate of reads."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.errors import EventLogError
from migrator.model.codecs.codec import FormatError, NewerFormatError
from migrator.model.codecs.reads_codec import reads_from_json, reads_to_json
from migrator.model.cutover.reads import ReadShape

FILE = "reads.json"
LOCK = "reads.lock"


class ReadResults:
    """One file, replaced as a whole.

    Args:
        state: the state folder.
    """

    def __init__(self, state: str | os.PathLike[str]):
        self._path = Path(state) / FILE
        self._lock = Path(state) / LOCK

    def read(self) -> tuple[ReadShape, ...]:
        """Returns what is kept. Raises ``EventLogError`` for a file that can't be read."""
        try:
            return reads_from_json(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, RecursionError) as error:
            newer = isinstance(error, NewerFormatError)
            raise EventLogError(
                "the results of dual reads can't be read",
                where=str(self._path),
                cause=str(error) if isinstance(error, FormatError) else f"{type(error).__name__}: {error}",
                remedy="use the version that wrote it"
                if newer
                else "remove the file, then run the dual reads again",
            ) from None

    def change(self, make: Callable[[Sequence[ReadShape]], Sequence[ReadShape]]) -> None:
        """Replaces what is kept by what is made of it; of two processes the second one waits."""
        try:
            durable.make_directory(self._path.parent)
            with self._lock.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                document = json.dumps(reads_to_json(make(self.read())))
                durable.replace_file(self._path, document.encode() + b"\n")
        except OSError as error:
            raise durable.disk_refused(
                "the results of a dual read can't be kept", self._path, error
            ) from error
