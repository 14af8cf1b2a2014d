"""Faults of the source's replica: promoted after the primary's death, or reached by mistake while it is behind."""

from __future__ import annotations

from scenarios.faults.fault import Fault, Options, migration_name, proxy_of, side_of
from scenarios.faults.log import LogFault
from scenarios.faults.processes import await_true, running_pid
from scenarios.faults.session import query
from scenarios.world import Replica, Side, World

_BATCHES_BEFORE = 3
"""Batches that must be in the target before the fault: without applied rows there would be nothing to judge."""
_BATCHES_BEHIND = 3
"""Batches that reach the target after the replica fell behind; one may have been under way."""
_BATCHES_TIMEOUT_S = 120.0


class ReplicaFault(LogFault):
    """A fault of the server that follows the source."""

    needs_replica = True

    def __init__(self, options: Options):
        super().__init__(options)
        self.needs_proxy = "source"

    def _await_batches(self, world: World, more: int, what: str) -> None:
        """Waits until so many more batches have reached the target, from whichever process runs now."""
        pid = running_pid(world, self.name)
        wanted = world.applied(pid) + more
        await_true(lambda: world.applied(pid) >= wanted, what, _BATCHES_TIMEOUT_S)

    def _replica(self, world: World) -> tuple[Side, Replica]:
        side = side_of(world, "source")
        if side.replica is None:
            raise AssertionError(f"{self.name} was placed where nothing follows the source")
        return side, side.replica


class PromoteReplica(ReplicaFault):
    """The primary is killed, its replica is promoted, and all clients are led to the replica.

    ``keep_log: true`` (the default): the replica has all that the primary had, and its log can be read on from:
    clients are cut off, the replica catches up, the primary is killed. PostgreSQL: its slots were copied.
    ``keep_log: false``: it has the rows, but not the log that the pipeline needs: no copy of the slot, or a binary
    log whose older files are purged.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._keep_log = options.flag("keep_log", True)

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        side, replica = self._replica(world)
        via = proxy_of(world, "source", self.name)
        front = side.front
        assert front is not None, "a replica comes with a front"
        self._await_batches(world, _BATCHES_BEFORE, "the target has some batches")
        replica.hand_over()
        front.refuse()
        via.refuse()
        replica.await_same()
        server = side.server
        killed = server.pid
        server.kill()
        replica.promote()
        there = replica.database

        def clients_go_on() -> None:
            front.switch_upstream(there.host, there.port)
            front.heal()
            mark = "SELECT coalesce(max(write_no), 0) FROM register WHERE writer < 90"
            before = query(there, mark)
            await_true(lambda: query(there, mark) != before, "clients write to the promoted replica")

        lost = ""
        if self._keep_log:
            clients_go_on()
        else:
            lost = replica.lose_log(f"migrator_{migration_name(world)}", clients_go_on)
        via.switch_upstream(there.host, there.port)
        via.heal()
        self._effect = f"primary {killed} killed, the replica promoted {lost}".rstrip()


class SwitchToReplica(ReplicaFault):
    """The address that the pipeline has leads to the replica, which has fallen behind; clients stay where they are.

    The switch comes once the target has transactions that the replica lacks. Healing leads back, and the replica
    catches up.
    """

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        _, replica = self._replica(world)
        via = proxy_of(world, "source", self.name)
        self._await_batches(world, _BATCHES_BEFORE, "the target has some batches")
        replica.await_same()
        replica.pause()
        self._await_batches(world, _BATCHES_BEHIND, "the target gets what the replica lacks")
        via.switch_upstream(replica.database.host, replica.database.port)
        self._effect = f"leads to the replica, {_BATCHES_BEHIND} batches behind"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        _, replica = self._replica(world)
        replica.resume()
        proxy_of(world, "source", self.name).switch_upstream(replica.primary.host, replica.primary.port)


FAULTS: dict[str, type[Fault]] = {"promote_replica": PromoteReplica, "switch_to_replica": SwitchToReplica}
