"""A TCP proxy in user space that does to a connection what networks do. Kernel facilities (netem) aren't needed.

What it can't do: lose or reorder packets, or refuse to acknowledge them. The kernel acknowledges what the proxy has
not forwarded, so keepalives of either end succeed across a half-open link: only the application's own deadlines can
notice, which is the harder case.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from migrator.embedded.process import LOCALHOST
from migrator.errors import ConfigError, MigratorError
from scenarios.proxy.link import DIRECTIONS, Conditions, Direction, Link, Stream, Trigger
from scenarios.proxy.triggers import AfterBytes, AroundCommit, FlipByte, Triggers
from scenarios.proxy.wire import scanner

_PIECE_BYTES = 65_536
_QUEUED_PIECES = 4  # little: what a slow line holds back, its sender must feel
_CONTROL_TIMEOUT_S = 10.0
_THROTTLED_SENDS_PER_S = 20

Result = TypeVar("Result")
Piece = tuple[float, bytes]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the proxy did; ``at_s`` by ``time.monotonic``."""

    what: str
    at_s: float


class TcpProxy:
    """A proxy in front of one server; a context manager. Its methods may be called from any thread.

    Args:
        host, port: the server.
        kind: ``postgresql``, ``mariadb`` or ``mysql``, whose streams are read for COMMITs; "" for any other
            protocol.
        seed: of the jitter.

    Attributes: ``host`` and ``port``, where it listens.
    """

    host = LOCALHOST

    def __init__(self, host: str, port: int, *, kind: str = "", seed: int = 0):
        self._upstream = (host, port)
        self._kind = kind
        self._random = random.Random(seed)
        self._conditions = Conditions()
        self._changed = asyncio.Event()
        self._triggers = Triggers()
        self._links: set[Link] = set()
        self._events: list[Event] = []
        self._heard = threading.Condition()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CONTROL_TIMEOUT_S)
        self._loop.close()

    # -- what happened ------------------------------------------------------------------------------------------

    def events(self) -> tuple[Event, ...]:
        """Lists what the proxy did so far: connections accepted, cut, refused; bytes flipped."""
        with self._heard:
            return tuple(self._events)

    def wait(self, what: str, timeout_s: float) -> bool:
        """Waits for an event whose text begins with ``what``; False when none came in time."""
        with self._heard:
            return self._heard.wait_for(
                lambda: any(event.what.startswith(what) for event in self._events), timeout_s
            )

    def connections(self) -> int:
        """Connections now open through the proxy, frozen ones included."""
        return len(self._links)

    # -- controls -----------------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """Cuts every connection and refuses new ones until ``heal``."""
        self._await(self._stop_listening())
        self.cut()

    def cut(self) -> int:
        """Resets every connection; returns how many there were."""

        def cut() -> int:
            open_links = list(self._links)
            for link in open_links:
                link.cut()
            self._note(f"cut {len(open_links)} connections")
            return len(open_links)

        return self._call(cut)

    def latency(self, latency_s: float, jitter_s: float = 0.0) -> None:
        """Delays every piece by ``latency_s`` and a random part of ``jitter_s``; order is kept."""
        if latency_s < 0 or jitter_s < 0:
            raise ConfigError("a delay can't be negative", where="latency")
        self._change(lambda now: replace(now, latency_s=latency_s, jitter_s=jitter_s))

    def throttle(self, bytes_per_s: int) -> None:
        """Forwards at most that many bytes a second in each direction of each connection."""
        if bytes_per_s < 1:
            raise ConfigError("a throttle needs at least one byte a second", where="bytes_per_s")
        self._change(lambda now: replace(now, bytes_per_s=bytes_per_s))

    def slices(self, size_bytes: int) -> None:
        """Sends at most that many bytes at once."""
        if size_bytes < 1:
            raise ConfigError("a slice has at least one byte", where="bytes")
        self._change(lambda now: replace(now, slice_bytes=size_bytes))

    def half_open(self, *, for_good: bool = True) -> int:
        """Stops forwarding, sockets stay open, and new connections are accepted but lead nowhere until ``heal``.

        Present connections stay dead for ever, as after a firewall has forgotten them; with ``for_good`` false they
        only stall until ``heal``. Returns how many there were.
        """

        def freeze() -> int:
            for link in self._links:
                link.frozen = link.frozen or for_good
            return len(self._links)

        frozen = self._call(freeze)
        self._change(lambda now: replace(now, blocked=frozenset(("to_server", "to_client"))))
        self._note(f"half open: {frozen} connections")
        return frozen

    def one_way(self, direction: Direction) -> None:
        """Forwards nothing in one direction until ``heal``."""
        self._change(lambda now: replace(now, blocked=frozenset((direction,))))

    def reset_after(self, size_bytes: int, direction: Direction, stream: Stream = "any") -> Trigger:
        """Resets the first connection that carries so many more bytes in a direction, exactly behind them."""
        if size_bytes < 1:
            raise ConfigError("a reset needs at least one byte before it", where="bytes")
        return self._arm(AfterBytes(direction, size_bytes, stream))

    def reset_around_commit(
        self, when: Literal["before", "after"], count: int = 1, stream: Stream = "any", silent: bool = False
    ) -> Trigger:
        """Resets a connection around its COMMIT, the ``count``-th from now on.

        ``before``: the COMMIT isn't forwarded, so the transaction can't be committed. ``after``: it is
        forwarded, the server's answer arrives here and is withheld, so the outcome is decided and the client
        can't know it. With
        ``silent`` the connection isn't reset: it stays open, and nothing is ever heard on it again.
        """
        if count < 1:
            raise ConfigError("COMMITs are counted from 1 on", where="count")
        if not self._kind:
            raise ConfigError("the proxy doesn't know the protocol whose COMMIT it is to find", where="kind")
        return self._arm(AroundCommit(when, count, stream, silent))

    def flip_byte(self, at_byte: int, direction: Direction = "to_client", stream: Stream = "any") -> Trigger:
        """Flips the lowest bit of one byte: the ``at_byte``-th from now on (0 is the next one)."""
        if at_byte < 0:
            raise ConfigError("bytes are counted from 0 on", where="at_byte")
        return self._arm(FlipByte(direction, at_byte, stream))

    def switch_upstream(self, host: str, port: int) -> None:
        """Leads new connections to another server and resets the present ones."""

        def switch() -> None:
            self._upstream = (host, port)

        self._call(switch)
        self._note(f"switched to {host}:{port}")
        self.cut()

    def heal(self) -> None:
        """Takes every condition back and disarms what hasn't fired. Connections frozen for good stay dead."""

        def heal() -> None:
            self._conditions = Conditions()
            self._triggers.clear()
            self._wake()
            if self._listener is None:
                self._listen()

        self._call(heal)
        self._note("healed")

    # -- inside the loop ----------------------------------------------------------------------------------------

    def _listen(self) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, self.port))
        listener.listen(128)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self._listener = listener
        self._accepting = self._loop.create_task(self._accept(listener))

    async def _stop_listening(self) -> None:
        if self._listener is not None and self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
            self._listener.close()
            self._listener = None
            self._note("refuses connections")

    async def _end(self) -> None:
        await self._stop_listening()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = await self._loop.sock_accept(listener)
            task = self._loop.create_task(self._serve(client))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _PIECE_BYTES)
        link = Link(client, server, scanner(self._kind))
        self._links.add(link)
        self._note("accepted")
        pumps: list[asyncio.Task[None]] = []
        try:
            while self._conditions.blocked:  # a partition has no way for a new connection in either direction
                await self._changed.wait()
            await self._loop.sock_connect(server, self._upstream)
            pumps = [
                self._loop.create_task(pump)
                for direction in DIRECTIONS
                for pump in self._pumps(link, direction)
            ]
            await self._until_over(link, pumps)
        except OSError:  # the server isn't there: the client sees its connection reset
            link.reset = True
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            link.close()
            self._links.discard(link)

    async def _until_over(self, link: Link, pumps: list[asyncio.Task[None]]) -> None:
        """Returns when both directions have ended, or raises the first error of one, or when the link is cut."""
        cut = self._loop.create_task(link.done.wait())
        running: set[asyncio.Task[Any]] = {*pumps, cut}
        try:
            while not cut.done() and running != {cut}:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
        finally:
            cut.cancel()

    def _pumps(self, link: Link, direction: Direction) -> tuple[Any, Any]:
        pieces: asyncio.Queue[Piece] = asyncio.Queue(_QUEUED_PIECES)
        return self._receive(link, direction, pieces), self._send(link, direction, pieces)

    async def _receive(self, link: Link, direction: Direction, pieces: asyncio.Queue[Piece]) -> None:
        origin, _ = link.ends(direction)
        due = 0.0
        data = b"x"
        while data:
            try:
                data = await self._loop.sock_recv(origin, _PIECE_BYTES)
            except OSError:
                if link.frozen:  # the other end must not learn of it
                    return
                raise
            delay_s = self._conditions.latency_s + self._conditions.jitter_s * self._random.random()
            due = max(due, self._loop.time() + delay_s)
            await pieces.put((due, data))

    async def _send(self, link: Link, direction: Direction, pieces: asyncio.Queue[Piece]) -> None:
        _, destination = link.ends(direction)
        while True:
            due, data = await pieces.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            while link.frozen or direction in self._conditions.blocked:
                await self._changed.wait()
            if link.done.is_set():
                return
            if not data:
                destination.shutdown(socket.SHUT_WR)
                return
            await self._forward(link, direction, data)

    async def _forward(self, link: Link, direction: Direction, data: bytes) -> None:
        if direction == "to_client" and link.at_answer is not None:
            self._happened(link.at_answer)
            link.fail(link.at_answer)
            return
        flip, data = self._triggers.flipped(link, direction, data)
        if flip is not None:
            self._happened(flip)
        cut: Trigger | None = None
        if direction == "to_server":
            cut, data = self._triggers.around_commit(link, data)
        if cut is None:
            cut, data = self._triggers.after_bytes(link, direction, data)
        await self._send_pieces(link, direction, data)
        if cut is not None:
            self._happened(cut)
            link.fail(cut)

    async def _send_pieces(self, link: Link, direction: Direction, data: bytes) -> None:
        _, destination = link.ends(direction)
        while data:
            now = self._conditions
            size = now.slice_bytes or len(data)
            if now.bytes_per_s:
                size = min(size, max(1, now.bytes_per_s // _THROTTLED_SENDS_PER_S))
            piece, data = data[:size], data[size:]
            await self._loop.sock_sendall(destination, piece)
            await asyncio.sleep(len(piece) / now.bytes_per_s if now.bytes_per_s else 0)

    def _happened(self, trigger: Trigger) -> None:
        trigger.fired = True
        self._triggers.disarm(trigger)
        self._note(trigger.what)

    # -- between threads ----------------------------------------------------------------------------------------

    def _arm(self, trigger: Trigger) -> Trigger:
        self._call(lambda: self._triggers.arm(trigger))
        return trigger

    def _change(self, changed: Callable[[Conditions], Conditions]) -> None:
        def change() -> None:
            self._conditions = changed(self._conditions)
            self._wake()

        self._call(change)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _call(self, do: Callable[[], Result]) -> Result:
        """Runs something in the loop's thread and waits for it."""

        async def run() -> Result:
            return do()

        return self._await(run())

    def _await(self, work: Coroutine[Any, Any, Result]) -> Result:
        if not self._thread.is_alive():
            work.close()
            raise MigratorError("the proxy isn't running", remedy="use it as a context manager")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_CONTROL_TIMEOUT_S)

    def _note(self, what: str) -> None:
        with self._heard:
            self._events.append(Event(what, time.monotonic()))
            self._heard.notify_all()
