"""The batch that is being sent, at rest: whoever starts after a kill sends the same bytes under the same key.

::

    <state>/eventlog/readers/<output>.batch    a line of JSON (see ``Batch``), then the body as it is sent

Only one batch is on its way at a time, so that the file is as large as one batch, and a batch that stands in it was
taken by the API if the next one is there.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from migrator.errors import OutputError
from migrator.ports.output import refused

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that are sent together.

    Attributes:
        stream: names the output for as long as it lives; no two outputs have the same.
        number: of the batch, from 1, without a gap.
        before: segment and number of the last event of the batch before; zeros for none.
        last: segment and number of its own last event.
        events: how many it has.
        body: the lines.
        unwanted: whether the API has said that it is too large, and so surely hasn't taken it.
    """

    stream: str
    number: int
    before: tuple[int, int]
    last: tuple[int, int]
    events: int
    body: bytes
    unwanted: bool = False

    def key(self) -> str:
        """The idempotency key: the same for the same bytes at the same place, and for nothing else."""
        return f"{self.stream}-{self.number}-{hashlib.sha256(self.body).hexdigest()[:16]}"


class Spool:
    """The file of one output. One thread uses it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Batch | None:
        """The batch that was sent last; None before the first. Raises ``OutputError`` for a damaged file."""
        try:
            head, _, body = self._path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused("the batch of an output can't be read", self._path, error) from error
        try:
            found = json.loads(head)
            if found.pop("format") != _FORMAT or found.pop("sha256") != hashlib.sha256(body).hexdigest():
                raise ValueError("its checksum or format is another one")
            return Batch(
                body=body, **{**found, "before": tuple(found["before"]), "last": tuple(found["last"])}
            )
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(
                "the batch of an output can't be used",
                where=str(self._path),
                cause=f"{type(error).__name__}: {error}",
                remedy="somebody edited or cut the file: restore it, or begin the output anew: `migrator events"
                " --forget` with the same --output",
            ) from error

    def write(self, batch: Batch) -> None:
        """Replaces the batch, durably. Raises ``OutputError`` when the disk refuses."""
        head = asdict(batch)
        body = head.pop("body")
        head |= {"format": _FORMAT, "sha256": hashlib.sha256(body).hexdigest()}
        unfinished = self._path.with_name(f"{self._path.name}.tmp")
        try:
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + body)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise refused(
                "the output can't be written: its batch can't be kept", self._path, error
            ) from error

    def remove(self) -> None:
        """Removes the file."""
        self._path.unlink(missing_ok=True)
