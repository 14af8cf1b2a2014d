"""Faults of the network between the pipeline and a server, done by the proxy in between."""

from __future__ import annotations

from typing import Literal, cast

from migrator.errors import MigratorError
from scenarios.faults.fault import Fault, Options, proxy_of
from scenarios.proxy.link import DIRECTIONS, STREAMS, Direction, Stream, Trigger
from scenarios.proxy.proxy import TcpProxy
from scenarios.world import World


class NetworkFault(Fault):
    """A condition of the network that lasts until it is healed. Option ``side``, by default the source."""

    def __init__(self, options: Options):
        super().__init__(options)
        self.side = options.side("source")
        self.needs_proxy = self.side
        self._effect = ""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        self._effect = self._change(proxy_of(world, self.side, self.name))

    def heal(self, world: World) -> None:
        """Takes every condition of this proxy back."""
        proxy_of(world, self.side, self.name).heal()

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def _change(self, proxy: TcpProxy) -> str:
        raise AssertionError(f"{self.name} changes nothing")


class Refuse(NetworkFault):
    """Present connections are reset, new ones refused."""

    def _change(self, proxy: TcpProxy) -> str:
        present = proxy.connections()
        proxy.refuse()
        return f"{present} connections reset, new ones refused"


class Latency(NetworkFault):
    """All data arrives ``ms`` later, plus up to ``jitter_ms``."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._latency_s = options.number("ms", least=1) / 1000
        self._jitter_s = options.number("jitter_ms", 0) / 1000

    def _change(self, proxy: TcpProxy) -> str:
        proxy.latency(self._latency_s, self._jitter_s)
        return f"{self._latency_s * 1000:g} ms and up to {self._jitter_s * 1000:g} ms later"


class Throttle(NetworkFault):
    """At most ``bytes_per_s`` in each direction of each connection."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._bytes_per_s = options.whole("bytes_per_s", least=1)

    def _change(self, proxy: TcpProxy) -> str:
        proxy.throttle(self._bytes_per_s)
        return f"{self._bytes_per_s} bytes/s"


class Slices(NetworkFault):
    """A limit on the size of one send: no more than ``bytes``."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._size_bytes = options.whole("bytes", 1, least=1)

    def _change(self, proxy: TcpProxy) -> str:
        proxy.slices(self._size_bytes)
        return f"slices of {self._size_bytes} bytes"


class HalfOpen(NetworkFault):
    """Nothing is forwarded, sockets stay open. ``resume: true`` lets the present connections go on when healed."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._resume = options.flag("resume", False)

    def _change(self, proxy: TcpProxy) -> str:
        frozen = proxy.half_open(for_good=not self._resume)
        if not frozen:
            raise MigratorError(
                "a half-open link needs a connection, and the pipeline has none", where=self.name
            )
        return f"{frozen} connections half open"


class OneWay(NetworkFault):
    """Nothing is forwarded in one ``direction``: ``to_server`` or ``to_client``."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._direction = cast(Direction, options.choice("direction", DIRECTIONS))

    def _change(self, proxy: TcpProxy) -> str:
        proxy.one_way(self._direction)
        return f"nothing goes {self._direction}"


class SwitchUpstream(NetworkFault):
    """New connections lead to the server at ``host`` and ``port``; present ones are reset. Healing leads back."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._host = options.text("host", "127.0.0.1")
        self._port = options.whole("port", least=1)

    def _change(self, proxy: TcpProxy) -> str:
        proxy.switch_upstream(self._host, self._port)
        return f"leads to {self._host}:{self._port}"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        direct = (world.source if self.side == "source" else world.target).direct
        proxy_of(world, self.side, self.name).switch_upstream(direct.host, direct.port)


class Once(NetworkFault):
    """A fault that waits for its moment on one connection. Option ``stream``: any, log, or session."""

    def __init__(self, options: Options):
        super().__init__(options)
        self.stream = cast(Stream, options.choice("stream", STREAMS, "any"))
        self._trigger: Trigger | None = None

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        self._trigger = self._arm(proxy_of(world, self.side, self.name))

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._trigger.what if self._trigger is not None and self._trigger.fired else ""

    def _arm(self, proxy: TcpProxy) -> Trigger:
        raise AssertionError(f"{self.name} waits for nothing")


class ResetAfter(Once):
    """A reset behind exactly ``bytes`` more in one ``direction`` (default ``to_client``)."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._direction = cast(Direction, options.choice("direction", DIRECTIONS, "to_client"))
        self._size_bytes = options.whole("bytes", least=1)

    def _arm(self, proxy: TcpProxy) -> Trigger:
        return proxy.reset_after(self._size_bytes, self._direction, self.stream)


class ResetAroundCommit(Once):
    """A reset ``before`` COMMIT is forwarded, or ``after`` its answer came. ``count``: the n-th from now on.

    ``silent: true``: the connection isn't reset but stays open, and nothing is ever heard on it again.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._when = cast(Literal["before", "after"], options.choice("when", ("before", "after")))
        self._count = options.whole("count", 1, least=1)
        self._silent = options.flag("silent", False)

    def _arm(self, proxy: TcpProxy) -> Trigger:
        return proxy.reset_around_commit(self._when, self._count, self.stream, self._silent)


class Flip(Once):
    """One bit flipped in the ``at_byte``-th byte from now on, in one ``direction`` (default ``to_client``)."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._direction = cast(Direction, options.choice("direction", DIRECTIONS, "to_client"))
        self._at_byte = options.whole("at_byte")

    def _arm(self, proxy: TcpProxy) -> Trigger:
        return proxy.flip_byte(self._at_byte, self._direction, self.stream)


FAULTS: dict[str, type[Fault]] = {
    "refuse": Refuse,
    "latency": Latency,
    "throttle": Throttle,
    "slices": Slices,
    "half_open": HalfOpen,
    "one_way": OneWay,
    "switch_upstream": SwitchUpstream,
    "reset_after": ResetAfter,
    "reset_around_commit": ResetAroundCommit,
    "flip_byte": Flip,
}
