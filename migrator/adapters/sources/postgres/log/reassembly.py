"""Large transactions that the server streams before they end, put back into the order of commits.

With ``streaming 'on'`` (protocol version 2) the server sends a transaction that outgrows its
``logical_decoding_work_mem`` while it runs, in pieces between other transactions, and may take it back. Here each
such transaction is collected in a file of its own until its outcome is known:

- Stream Commit: it is handed on as Begin, its rows, Commit, at this place; the log reader sees no difference.
- Stream Abort of the transaction: its file is forgotten.
- Stream Abort of a subtransaction (a savepoint rolled back): its messages are left out when the file is read. They
  are told by the xid that each streamed message carries.

Relation messages are collected with the rows: the server sends them anew in every streamed transaction, and counts
them as known to us from its commit on. Nothing is parsed before the commit, and memory holds a buffer per open
transaction, whatever its size. A file has no name in its folder: it ends with the process.

Source: PostgreSQL documentation, "Logical Streaming Replication Protocol" and "Logical Replication Message
    Formats".
"""

from __future__ import annotations

import struct
import tempfile
from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from migrator.adapters.sources.postgres.log.pgoutput import (
    StreamAbort,
    StreamCommit,
    StreamStart,
    StreamStop,
    begin_bytes,
    commit_bytes,
    parse,
)
from migrator.adapters.sources.postgres.log.replication import KEEPALIVE, ReplicationStream
from migrator.errors import SourceError

_CONTROL = frozenset(b"SEcA")
_ORIGIN = ord("O")
_U32 = struct.Struct("!I")
_XID = slice(1, 5)
_BUFFER_BYTES = 1 << 16
_MESSAGES_BETWEEN_SIGNS = 2000
_PIECE_BYTES = 8 << 20


class _Collected:
    """The messages of one streamed transaction, in a file: length, message, length, message."""

    def __init__(self, folder: Path | None):
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, buffering=_BUFFER_BYTES)  # noqa: SIM115
        self._undone: set[bytes] = set()
        self.bytes = 0

    def add(self, payload: bytes) -> None:
        self._file.write(_U32.pack(len(payload)) + payload)
        self.bytes += _U32.size + len(payload)

    def undo(self, subtransaction: int) -> None:
        self._undone.add(_U32.pack(subtransaction))

    def messages(self) -> Iterator[bytes]:
        """Returns what was not undone, as it would come unstreamed."""
        self._file.seek(0)
        read = self._file.read
        while head := read(_U32.size):
            payload = read(_U32.unpack(head)[0])
            if payload[_XID] not in self._undone:
                yield payload[:1] + payload[_XID.stop :]

    def close(self) -> None:
        self._file.close()


def _piece(messages: Iterator[bytes], most: int) -> list[bytes]:
    """The next ones: at most so many, and fewer where they are large."""
    found: list[bytes] = []
    held = 0
    for payload in islice(messages, most):
        found.append(payload)
        held += len(payload)
        if held >= _PIECE_BYTES:
            break
    return found


class Reassembly:
    """The messages of a replication stream, with streamed transactions whole and in their place.

    Args:
        stream: what the server sends.
        folder: where transactions under way are collected, made when needed; None for the system's temporary one.

    Raises ``SourceError`` (from ``take``) when a transaction can't be collected, or when the pieces make no sense.
    """

    def __init__(self, stream: ReplicationStream, folder: Path | None):
        self._stream = stream
        self._folder = folder
        self._open: dict[int, _Collected | None] = {}
        self._current: int | None = None
        self._whole: Generator[bytes] | None = None
        self._received: deque[bytes] = deque()

    def take(self, most: int) -> list[bytes]:
        """See ``ReplicationStream.take``. Never blocks on the network."""
        while True:
            if self._whole is not None:
                if found := _piece(self._whole, most):
                    return found
                self._whole = None
            if not self._received:
                self._received = deque(self._stream.take(most))
                if not self._received:
                    return []
            if found := self._sorted():
                return found

    def _sorted(self) -> list[bytes]:
        """Returns what was received and is to be handed on, up to the end of a streamed transaction."""
        found: list[bytes] = []
        received = self._received
        while received and self._whole is None:
            payload = received.popleft()
            if payload[0] in _CONTROL:
                self._control(payload)
            elif self._current is None:
                found.append(payload)
            elif (
                payload[0] != KEEPALIVE
            ):  # inside a piece it says nothing that the next one outside doesn't say
                self._collect(self._current, payload)
        return found

    def collected_bytes(self) -> int:
        """Bytes of the transactions whose outcome isn't known yet."""
        return sum(transaction.bytes for transaction in self._open.values() if transaction is not None)

    def close(self) -> None:
        """Forgets what was collected: the server sends it again."""
        for transaction in self._open.values():
            if transaction is not None:
                transaction.close()
        if self._whole is not None:
            self._whole.close()
        self._open.clear()
        self._received.clear()
        self._current = self._whole = None

    def _control(self, payload: bytes) -> None:
        message = parse(payload)
        match message:
            case StreamStart(xid, first):
                if self._current is not None or first == (xid in self._open):
                    raise self._senseless(f"a piece of transaction {xid} begins out of turn")
                self._open.setdefault(xid, None)
                self._current = xid
            case StreamStop():
                if self._current is None:
                    raise self._senseless("a piece ends that hasn't begun")
                self._current = None
            case StreamCommit():
                self._whole = self._transaction(message, self._ended(message.xid))
            case StreamAbort(xid, subtransaction) if subtransaction != xid:
                if (collected := self._open.get(xid)) is not None:
                    collected.undo(subtransaction)
            case StreamAbort(xid, _):
                if (collected := self._ended(xid)) is not None:
                    collected.close()

    def _collect(self, xid: int, payload: bytes) -> None:
        if payload[0] == _ORIGIN:  # carries no xid, and nobody asks for it
            return
        try:
            collected = self._open[xid]
            if collected is None:
                collected = self._open[xid] = _Collected(self._folder)
            collected.add(payload)
        except OSError as error:
            raise self._full(error) from error

    def _ended(self, xid: int) -> _Collected | None:
        """Returns what was collected of a transaction, which is forgotten; None if it holds no message."""
        if self._current is not None or xid not in self._open:
            raise self._senseless(f"transaction {xid} ends that isn't open")
        return self._open.pop(xid)

    def _transaction(self, end: StreamCommit, collected: _Collected | None) -> Generator[bytes]:
        yield begin_bytes(end)
        if collected is not None:
            try:
                for number, payload in enumerate(collected.messages()):
                    if number % _MESSAGES_BETWEEN_SIGNS == 0:
                        self._stream.busy()
                    yield payload
            except OSError as error:
                raise self._full(error) from error
            finally:
                collected.close()
        yield commit_bytes(end)

    def _senseless(self, cause: str) -> SourceError:
        return SourceError(
            "the source log's streamed transactions make no sense",
            where=str(self._folder or "the log"),
            cause=cause,
            remedy="reading resumes from the last stored position; report this if it repeats at the same place",
            retryable=True,
        )

    def _full(self, error: OSError) -> SourceError:
        return SourceError(
            "a large transaction of the source can't be collected",
            where=str(self._folder or tempfile.gettempdir()),
            cause=f"{error.strerror or error} ({self.collected_bytes()} bytes are collected)",
            remedy="make room there and start again, or leave large transactions to the source's own disk:"
            " [source] streaming = false",
        )
