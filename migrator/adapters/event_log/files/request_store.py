"""Dump requests as one file of the state folder: one line of JSON, one line with the SHA-256 of the first.

The file is replaced as a whole, under a lock that its updates share, so a reader sees one book or the next and a
crash leaves one of them. Machines that share no state folder need another store behind the same port.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.errors import RequestError
from migrator.model.codecs.codec import (
    NEWER,
    NewerFormatError,
    requests_from_json,
    requests_to_json,
)
from migrator.model.requests.request import RequestBook

_NAME = "requests.json"


_FORGET = "restore the file, or remove it: requests are forgotten then, what they brought is not"


class FileRequests:
    """A ``RequestStore`` in a directory, which is made with the first update.

    Args:
        state: the migration's state folder, on a local filesystem.
    """

    def __init__(self, state: str | os.PathLike[str]):
        self._path = Path(os.path.abspath(state)) / _NAME

    def read(self) -> RequestBook:
        """The book as of now. Raises ``RequestError`` naming the file when it is damaged or can't be read."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return RequestBook()
        except OSError as error:
            raise self._refused(error) from error
        line, _, rest = content.partition(b"\n")
        if rest != _checksum(line):
            raise self._damaged("its checksum line doesn't fit: the file is torn or was edited")
        try:
            return requests_from_json(json.loads(line))
        except NewerFormatError as error:
            raise self._damaged(str(error), NEWER) from error
        except (ValueError, TypeError, RecursionError) as error:  # FormatError is a ValueError
            raise self._damaged(str(error)) from error

    def update(self, change: Callable[[RequestBook], RequestBook]) -> RequestBook:
        """Replaces the book (see the port). Raises ``RequestError`` as ``read`` does, or when the disk refuses."""
        try:
            durable.make_directory(self._path.parent)
            with self._locked():
                old = self.read()
                new = change(old)
                if new != old:
                    self._write(new)
                return new
        except OSError as error:
            raise self._refused(error) from error

    def _write(self, book: RequestBook) -> None:
        line = json.dumps(requests_to_json(book), ensure_ascii=False, separators=(",", ":")).encode()
        durable.replace_file(self._path, line + b"\n" + _checksum(line))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds the lock of updates, whose file is never removed."""
        handle = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _damaged(self, cause: str, remedy: str = _FORGET) -> RequestError:
        return RequestError(
            "the dump requests can't be read", where=str(self._path), cause=cause, remedy=remedy
        )

    def _refused(self, error: OSError) -> RequestError:
        named = durable.disk_refused("the dump requests can't be kept", self._path, error)
        return RequestError(named.what, where=named.where, cause=named.cause, remedy=named.remedy)


def _checksum(line: bytes) -> bytes:
    return b'{"sha256":"' + hashlib.sha256(line).hexdigest().encode() + b'"}\n'
