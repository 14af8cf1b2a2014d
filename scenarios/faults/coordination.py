"""Faults between the pipeline and the ZooKeeper that says who leads. The databases stay in reach of everybody."""

from __future__ import annotations

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.leadership import seen
from scenarios.faults.fault import Fault, Options, impossible
from scenarios.faults.process_tree import alive
from scenarios.faults.processes import await_true, running_pid
from scenarios.faults.standin import StandIn
from scenarios.world import World, ZooKeeperSide

_PATIENCE_S = 120.0


class ZooKeeperFault(Fault):
    """A fault that needs a ZooKeeper; the pipeline runs with ``--ha`` then, and reaches it through a proxy."""

    needs_zookeeper = True

    def __init__(self, options: Options):
        super().__init__(options)
        self._effect = ""
        self._leader = ""

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def _side(self, world: World) -> ZooKeeperSide:
        if world.zookeeper is None:
            raise impossible(self.name, "the scenario has no ZooKeeper")
        return world.zookeeper

    def _look(self, world: World) -> tuple[str, tuple[str, ...]]:
        """Asks ZooKeeper, past the proxy, who leads and who stands by."""
        side = self._side(world)
        session = ZooKeeperSession(side.settings, side.migration)
        try:
            return seen(session)
        finally:
            session.close()

    def _cut(self, world: World) -> None:
        pid = running_pid(world, self.name)
        leader, _ = self._look(world)
        if f"process {pid} " not in leader:
            raise impossible(
                self.name, f"the pipeline (process {pid}) doesn't lead, but {leader or 'nobody'}"
            )
        self._leader = leader
        self._side(world).proxy.half_open()


class ZooKeeperExpire(ZooKeeperFault):
    """The leader hears nothing of ZooKeeper until its session has expired; healing waits for that."""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        self._cut(world)

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        await_true(lambda: self._look(world)[0] != self._leader, "the session expires", _PATIENCE_S)
        self._side(world).proxy.heal()
        self._effect = f"the session of {self._leader} expired"


class ZooKeeperSuspend(ZooKeeperFault):
    """The leader hears nothing of ZooKeeper until healed, which must come before its session expires."""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        self._cut(world)
        self._effect = f"{self._leader} cut off for a moment"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        self._side(world).proxy.heal()


class ZooKeeperKill(ZooKeeperFault):
    """The server is killed; healing starts it again, with its data."""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        self._side(world).server.kill()
        self._effect = "ZooKeeper killed"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        self._side(world).server.start()


class ZooKeeperPartition(ZooKeeperFault):
    """The leader is cut off. A stand-in whose connection works stands by and takes over, on the same event log.

    Healing waits until the stand-in has written, heals the line, waits until the first one stands by, has ended or
    has written in its turn (which the checkers judge), and kills the stand-in, so that the first one leads again.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._standin = StandIn()
        self._standin.timeout_s = 2 * StandIn.timeout_s  # it starts Spark beside a run that is at work

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        side = self._side(world)
        through = f"{side.proxy.host}:{side.proxy.port}"
        self._cut(world)
        self._standin.start(world, world.pipeline.pid, {through: side.settings.hosts})
        self._effect = f"{self._leader} cut off"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        first = world.pipeline.pid
        self._standin.await_lead(world)
        before = world.applied(first)
        self._side(world).proxy.heal()

        def settled() -> bool:
            stands_by = any(f"process {first} " in standby for standby in self._look(world)[1])
            return stands_by or not alive(first) or world.applied(first) > before

        await_true(settled, "the first leader stands by, ends, or writes", _PATIENCE_S)
        came = "stood by" if world.applied(first) == before else "WROTE"
        self._effect += f"; replaced by {self._standin.leader()}, then the first one {came}"
        self._standin.kill()

    def close(self) -> None:
        """See ``Fault.close``."""
        self._standin.kill()


FAULTS: dict[str, type[Fault]] = {
    "zookeeper_expire": ZooKeeperExpire,
    "zookeeper_suspend": ZooKeeperSuspend,
    "zookeeper_kill": ZooKeeperKill,
    "zookeeper_partition": ZooKeeperPartition,
}
