"""One proxied connection: two sockets, two directions, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from typing import Literal

from scenarios.proxy.wire import Scanner

Direction = Literal["to_server", "to_client"]
Stream = Literal["any", "log", "session"]
DIRECTIONS: tuple[Direction, ...] = ("to_server", "to_client")
STREAMS: tuple[Stream, ...] = ("any", "log", "session")

_RESET = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Conditions:
    """The present conditions of the network.

    Attributes:
        latency_s, jitter_s: delay of every piece, and the most that a random part adds to it.
        bytes_per_s: of each direction of each connection; 0 is unlimited.
        slice_bytes: most bytes of one send; 0 is as they come.
        blocked: directions in which nothing is forwarded.
    """

    latency_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: int = 0
    slice_bytes: int = 0
    blocked: frozenset[Direction] = frozenset()


class Trigger:
    """Something that is to happen to one connection, once.

    Attributes:
        what: for reports.
        fired: whether it has happened.
        silent: the connection isn't cut but stays open, silent for good.
    """

    silent = False

    def __init__(self, what: str, stream: Stream):
        self.what = what
        self.stream = stream
        self.fired = False


class Link:
    """A client's connection and ours to the server. Used in the proxy's loop only.

    Attributes:
        frozen: nothing is ever forwarded again, both sockets stay open.
        at_answer: what cuts the link when the server's next bytes arrive, which are withheld.
        done: set when the connection is to be taken down; ``reset`` says how.
    """

    def __init__(self, client: socket.socket, server: socket.socket, scanner: Scanner):
        self.client = client
        self.server = server
        self.scanner = scanner
        self.frozen = False
        self.at_answer: Trigger | None = None
        self.done = asyncio.Event()
        self.reset = False

    def ends(self, direction: Direction) -> tuple[socket.socket, socket.socket]:
        """Returns the sockets that a direction comes from and goes to."""
        return (self.client, self.server) if direction == "to_server" else (self.server, self.client)

    def fail(self, trigger: Trigger) -> None:
        """Cuts the link, or freezes it, as the trigger wants."""
        if trigger.silent:
            self.frozen = True
        else:
            self.cut()

    def cut(self) -> None:
        """Ends both connections with RST."""
        self.reset = True
        self.done.set()

    def is_of(self, stream: Stream) -> bool:
        """Returns whether the connection is of the stream asked for: the server's log being read, or another one."""
        return stream == "any" or self.scanner.is_log == (stream == "log")

    def close(self) -> None:
        """Closes both sockets."""
        for end in (self.client, self.server):
            close(end, reset=self.reset)


def close(end: socket.socket, *, reset: bool) -> None:
    """Closes a socket, with RST instead of FIN if asked (SO_LINGER of zero seconds)."""
    if reset:
        with contextlib.suppress(OSError):  # its other end has gone already
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    end.close()
