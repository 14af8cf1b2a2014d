"""A proxy's reading of a client's stream: where a COMMIT is executed, and whether the connection is a log stream.

Sources: PostgreSQL documentation, "Frontend/Backend Protocol", message formats; MariaDB documentation,
    "Client/Server Protocol", packets and COM_QUERY. A stream under TLS can't be read: nothing is ever found
    in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

_COMMIT = re.compile(rb"\s*(COMMIT|END)(\s+(WORK|TRANSACTION))?\s*;?\s*\0?", re.IGNORECASE)
_TLS_REQUEST, _GSS_REQUEST = 80877103, 80877104
_TLS_HANDSHAKE = 0x16
_COM_QUERY, _COM_BINLOG_DUMP, _COM_BINLOG_DUMP_GTID = 0x03, 0x12, 0x1E
_CLIENT_SSL = 0x0800


@dataclass(frozen=True, slots=True)
class Commit:
    """Place of a message that executes COMMIT, as offsets into the bytes given last.

    ``begin`` is 0 when the message began in earlier bytes; ``end`` is behind its last byte.
    """

    begin: int
    end: int


class Scanner(Protocol):
    """Reads one client's bytes in order, however they are cut into pieces."""

    is_log: bool
    """True once the connection has asked for the server's log (replication)."""

    def feed(self, data: bytes) -> list[Commit]:
        """Takes the next bytes; the COMMITs whose last byte is among them."""
        ...


class OpaqueScanner:
    """Reads nothing: a protocol it doesn't know."""

    is_log = False

    def feed(self, data: bytes) -> list[Commit]:
        """Finds nothing."""
        return []


class PostgresScanner:
    """Frontend messages: simple Query, and Parse, Bind, Execute."""

    _READ = frozenset(b"QPBE")

    def __init__(self) -> None:
        self.is_log = False
        self._held = bytearray()
        self._skip_bytes = 0
        self._started = False
        self._opaque = False
        self._statements: dict[bytes, bool] = {}
        self._portals: dict[bytes, bool] = {}

    def feed(self, data: bytes) -> list[Commit]:
        """See ``Scanner.feed``."""
        found: list[Commit] = []
        at = -len(self._held)
        self._held += data
        while not self._opaque:
            if self._skip_bytes:
                taken = min(self._skip_bytes, len(self._held))
                del self._held[:taken]
                self._skip_bytes -= taken
                at += taken
            head = 5 if self._started else 4
            if len(self._held) < head or self._skip_bytes:
                return found
            size = int.from_bytes(self._held[head - 4 : head], "big") + head - 4
            if not self._started and self._held[0] == _TLS_HANDSHAKE:
                self._opaque = True
            elif self._started and self._held[0] not in self._READ:
                self._skip_bytes = size
            elif len(self._held) < size:
                return found
            else:
                message = bytes(self._held[:size])
                del self._held[:size]
                if self._executes_commit(message) if self._started else self._start(message):
                    found.append(Commit(max(0, at), at + size))
                at += size
        self._held.clear()
        return found

    def _start(self, message: bytes) -> bool:
        """A message of the start-up, which has no type; none of them is a COMMIT."""
        code = int.from_bytes(message[4:8], "big")
        if code not in (_TLS_REQUEST, _GSS_REQUEST):
            self._started = True
            words = message[8:].split(b"\0")
            options = dict(zip(words[::2], words[1::2], strict=False))
            self.is_log = options.get(b"replication", b"") in (b"database", b"true", b"on", b"yes", b"1")
        return False

    def _executes_commit(self, message: bytes) -> bool:
        kind, body = message[:1], message[5:]
        first, _, rest = body.partition(b"\0")
        if kind == b"Q":
            return _COMMIT.fullmatch(first) is not None
        if kind == b"P":
            self._statements[first] = _COMMIT.fullmatch(rest.partition(b"\0")[0]) is not None
        elif kind == b"B":
            self._portals[first] = self._statements.get(rest.partition(b"\0")[0], False)
        return kind == b"E" and self._portals.get(first, False)


class MariaScanner:
    """Client packets: COM_QUERY with COMMIT as its text, and COM_BINLOG_DUMP."""

    def __init__(self) -> None:
        self.is_log = False
        self._held = bytearray()
        self._skip_bytes = 0
        self._logged_in = False
        self._opaque = False

    def feed(self, data: bytes) -> list[Commit]:
        """See ``Scanner.feed``."""
        found: list[Commit] = []
        at = -len(self._held)
        self._held += data
        while not self._opaque:
            if self._skip_bytes:
                taken = min(self._skip_bytes, len(self._held))
                del self._held[:taken]
                self._skip_bytes -= taken
                at += taken
            if len(self._held) < 5 or self._skip_bytes:
                return found
            size = int.from_bytes(self._held[:3], "little") + 4
            if self._logged_in and (self._held[3] != 0 or self._held[4] != _COM_QUERY or size > 64):
                # Only a packet numbered 0 begins a command; no COMMIT is longer than this.
                self._see_command(self._held[3], self._held[4])
                self._skip_bytes = size
            elif len(self._held) < size:
                return found
            else:
                packet = bytes(self._held[:size])
                del self._held[:size]
                if self._logged_in and _COMMIT.fullmatch(packet[5:]) is not None:
                    found.append(Commit(max(0, at), at + size))
                self._see_login(packet)
                at += size
        self._held.clear()
        return found

    def _see_command(self, number: int, command: int) -> None:
        if number == 0 and command in (_COM_BINLOG_DUMP, _COM_BINLOG_DUMP_GTID):
            self.is_log = True

    def _see_login(self, packet: bytes) -> None:
        """The first packet is the answer to the server's greeting, or asks for TLS."""
        if not self._logged_in:
            self._logged_in = True
            self._opaque = len(packet) == 36 and bool(int.from_bytes(packet[4:8], "little") & _CLIENT_SSL)


def scanner(kind: str) -> Scanner:
    """The scanner of an engine's protocol; one that finds nothing for any other ``kind``."""
    if kind == "postgresql":
        return PostgresScanner()
    return MariaScanner() if kind in ("mariadb", "mysql") else OpaqueScanner()
