"""Received bytes of a connection, read in bulk instead of value by value."""

from __future__ import annotations

import struct
from typing import Any

from migrator.connections.mysql.connection import Connection

_RECEIVE_BYTES = 1 << 20
_GATHERED_BYTES = 1 << 19
_LARGEST_PACKET = 0xFFFFFF
_HEAD = struct.Struct("<I")
_EVENT = b"\0"


class PacketBuffer:
    """Received bytes of one socket, in place of PyMySQL's buffered file: it can tell whether a packet is
    complete."""

    def __init__(self, sock: Any):
        self._sock = sock
        self._plain = not hasattr(sock, "pending")  # TLS gives one record at a time
        self._data = bytearray()
        self._at = 0
        self._room = memoryview(bytearray())
        self._failure: OSError | EOFError | None = None

    def read(self, size: int) -> bytes:
        """``size`` bytes, waiting for them; fewer at the end of the stream (what PyMySQL expects of a file)."""
        while len(self._data) - self._at < size:
            piece = self._sock.recv(_RECEIVE_BYTES)
            if not piece:
                break
            self._append(piece)
        piece = bytes(self._data[self._at : self._at + size])
        self._at += len(piece)
        return piece

    def close(self) -> None:
        """Nothing: the socket belongs to the connection."""

    def drain(self) -> bytes:
        """All bytes not read yet."""
        rest = bytes(memoryview(self._data)[self._at :])
        self._data.clear()
        self._at = 0
        return rest

    def receive(self, at_least: int) -> bytes:
        """Waits for more bytes and hands them out unread. Raises ``OSError`` when the connection is cut."""
        pieces, size = [], 0
        while size < at_least:
            piece = self._sock.recv(_RECEIVE_BYTES)
            if not piece:
                raise ConnectionResetError("the server closed the connection")
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def receive_into(self, view: memoryview) -> int:
        """Waits for more bytes and hands them out there; how many they are. Raises as ``receive`` does."""
        size: int = self._sock.recv_into(view)
        if not size:
            raise ConnectionResetError("the server closed the connection")
        return size

    def receive_now(self) -> bool:
        """Takes what the socket holds, without waiting, but no more than about ``_GATHERED_BYTES``.

        Over TLS a socket gives 16 KiB at a time; handed on one by one, each would cost a switch between threads.
        What came before an end is taken first, and the end is told next time. Raises ``EOFError`` when the
        server has hung up, and what the socket raises.
        """
        if self._failure is not None:
            raise self._failure
        pieces: list[bytes] = []
        size = 0
        while size < _GATHERED_BYTES:
            try:
                piece = self._receive()
            except (OSError, EOFError) as error:
                if not pieces:
                    raise
                self._failure = error
                break
            if piece is None:
                break
            pieces.append(piece)
            size += len(piece)
            if self._plain and len(piece) < _RECEIVE_BYTES:  # that was all there was
                break
        if pieces:
            self._append(b"".join(pieces))
        return bool(pieces)

    def _receive(self) -> bytes | None:
        """A piece that is there; None if there is none now.

        Received into a place that stays: to make room for a mebibyte and to give it back costs more than a small
        transaction does.
        """
        if not self._room:
            self._room = memoryview(bytearray(_RECEIVE_BYTES))
        try:
            size: int = self._sock.recv_into(self._room)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            # a TLS record is not complete yet (ssl.SSLWantReadError says so by its name only)
            if type(error).__name__ == "SSLWantReadError":
                return None
            raise
        if not size:
            raise EOFError("the server closed the connection")
        return bytes(self._room[:size])

    def events(self) -> tuple[list[bytes], bytes | None]:
        """Returns the content of complete packets: events, and the payload of the first packet that is none, if any.

        A packet is an event if its first byte says so; the event is what follows. One of 16 MiB or more spans
        several packets. Behind a packet that is no event nothing is looked at.
        """
        found: list[bytes] = []
        if not self._whole():  # then nothing is copied, however often we are asked
            return found, None
        data, at, end = bytes(self._data), self._at, len(self._data)
        add, size_at, last = found.append, _HEAD.unpack_from, end - _HEAD.size
        while at <= last:
            size = size_at(data, at)[0] & _LARGEST_PACKET  # above it is the number of the packet
            stop = at + 4 + size
            if stop > end:
                break
            if 0 < size < _LARGEST_PACKET and not data[at + 4]:
                add(data[at + 5 : stop])
                at = stop
                continue
            payload, behind = _joined(data, at)
            if payload is None:
                break
            at = behind
            if payload[:1] != _EVENT:
                self._at = at
                return found, payload
            add(payload[1:])
        self._at = at
        return found, None

    def _whole(self) -> bool:
        """Tells whether the next payload is complete."""
        at, end = self._at, len(self._data)
        while end - at >= _HEAD.size:
            size: int = _HEAD.unpack_from(self._data, at)[0] & _LARGEST_PACKET
            at += _HEAD.size + size
            if size < _LARGEST_PACKET:
                return at <= end
        return False

    def _append(self, piece: bytes) -> None:
        if self._at:
            del self._data[: self._at]
            self._at = 0
        self._data += piece


def _joined(data: bytes, at: int) -> tuple[bytes | None, int]:
    """The payload that begins with the packet at ``at``, and the place behind it; None if it isn't complete."""
    pieces: list[bytes] = []
    while at + _HEAD.size <= len(data):
        size: int = _HEAD.unpack_from(data, at)[0] & _LARGEST_PACKET
        stop = at + 4 + size
        if stop > len(data):
            break
        pieces.append(data[at + 4 : stop])
        if size < _LARGEST_PACKET:
            return b"".join(pieces), stop
        at = stop
    return None, at


class BufferedConnection(Connection):
    """A PyMySQL connection that reads through a ``PacketBuffer``."""

    buffer: PacketBuffer

    def connect(self, sock: Any = None) -> None:
        """Logs in, then swaps the reader: the server sends nothing unasked, so no byte is lost between the two."""
        super().connect(sock)
        self.buffer = PacketBuffer(self._sock)
        self._rfile = self.buffer
