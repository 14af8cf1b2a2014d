"""Received bytes of a connection, read in bulk instead of value by value."""

from __future__ import annotations

import struct
from typing import Any

from pymysql.connections import Connection

_RECEIVE_BYTES = 1 << 20
_LARGEST_PACKET = 0xFFFFFF
_HEAD = struct.Struct("<I")


class PacketBuffer:
    """Received bytes of one socket, in place of PyMySQL's buffered file: it can tell whether a packet is complete."""

    def __init__(self, sock: Any):
        self._sock = sock
        self._data = bytearray()
        self._at = 0

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

    def receive_now(self) -> bool:
        """Takes what the socket holds, without waiting. Raises ``EOFError`` when the server has hung up."""
        try:
            piece = self._sock.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            # a TLS record is not complete yet (ssl.SSLWantReadError says so by its name only)
            if type(error).__name__ == "SSLWantReadError":
                return False
            raise
        if not piece:
            raise EOFError("the server closed the connection")
        self._append(piece)
        return True

    def packets(self) -> list[bytes]:
        """The payloads of all complete packets; one of 16 MiB or more spans several."""
        if not self._whole():  # then nothing is copied, however often we are asked
            return []
        data, at, end = bytes(self._data), self._at, len(self._data)
        found: list[bytes] = []
        pieces: list[bytes] = []
        size_at, last = _HEAD.unpack_from, end - _HEAD.size
        while at <= last:
            size = size_at(data, at)[0] & _LARGEST_PACKET  # above it is the number of the packet
            stop = at + 4 + size
            if stop > end:
                break
            if size < _LARGEST_PACKET and not pieces:
                found.append(data[at + 4 : stop])
                self._at = stop
            else:
                pieces.append(data[at + 4 : stop])
                if size < _LARGEST_PACKET:
                    found.append(b"".join(pieces))
                    pieces, self._at = [], stop
            at = stop
        return found

    def _whole(self) -> bool:
        """Whether the next payload is complete."""
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


class BufferedConnection(Connection):  # type: ignore[misc]
    """A PyMySQL connection that reads through a ``PacketBuffer``."""

    buffer: PacketBuffer

    def connect(self, sock: Any = None) -> None:
        """Logs in, then swaps the reader: the server sends nothing unasked, so no byte is lost between the two."""
        super().connect(sock)
        self.buffer = PacketBuffer(self._sock)
        self._rfile = self.buffer
