"""Leadership when members of the ensemble die and leaders are cut off: never two who are sure at one time."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from migrator.adapters.coordination.zookeeper.leadership import ZooKeeperLeadership
from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.embedded.zookeeper import EmbeddedEnsemble, EmbeddedZooKeeper
from migrator.errors import ConnectionFailed, FencedError
from migrator.model.coordination import Coordination
from migrator.ports.leadership import Lease
from scenarios.proxy.proxy import TcpProxy
from tests.fix_zookeeper import Contenders
from tests.integration.waiting import await_true

pytestmark = pytest.mark.integration
SESSION_S = 4.0


@pytest.fixture(scope="module")
def ensemble() -> Iterator[EmbeddedEnsemble]:
    with (
        scratch_directory("migrator-ensemble-") as folder,
        EmbeddedEnsemble(folder, java_home=java_home()) as members,
    ):
        yield members


def three(ensemble: EmbeddedEnsemble, session_s: float = SESSION_S) -> Coordination:
    return Coordination(ensemble.hosts, f"/tests/{uuid.uuid4().hex}", session_s)


def try_to_lead(standby: ZooKeeperLeadership) -> bool:
    """One attempt, as a standby makes it."""
    try:
        if standby.stand_by(0.2):
            return False
        standby.acquire(0)
    except (ConnectionFailed, FencedError):
        return False
    return True


class Watched:
    """When each of some leaders was sure, looked at every few milliseconds."""

    def __init__(self, *leaders: ZooKeeperLeadership):
        self._leaders = leaders
        self.first: dict[int, float] = {}
        self.last: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @contextmanager
    def watching(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def _watch(self) -> None:
        ended = False
        while (
            not ended
        ):  # the one asked first is asked once more after the other was seen: only then both can be told
            ended = self._stop.wait(0.005)
            for number, leader in enumerate(self._leaders):
                asked = time.monotonic()
                if leader.sure():
                    self.first.setdefault(number, asked)
                    self.last[number] = asked

    def overlap(self) -> bool:
        """Whether the first one was still sure when the second one was."""
        return self.last[0] >= self.first[1]


def test_one_member_killed_and_the_leader_goes_on(ensemble: EmbeddedEnsemble, contenders: Contenders) -> None:
    settings = three(
        ensemble, 30.0
    )  # a busy machine's ensemble may take long to elect: nothing here waits for it
    leader, standby = contenders(settings), contenders(settings)
    lease = leader.acquire(0)
    for member in ensemble.members:  # one of them leads the ensemble, one of them holds our session
        member.kill()
        await_true(leader.sure, "it is sure again, with two of three members")
        assert leader.held()
        assert not try_to_lead(standby)
        member.start()
        ensemble.await_quorum()
    assert lease.epoch == 1


@pytest.mark.slow
def test_without_a_quorum_the_leader_stops_and_with_one_again_somebody_leads(
    ensemble: EmbeddedEnsemble, contenders: Contenders
) -> None:
    settings = three(ensemble)
    leader, standby = contenders(settings), contenders(settings)
    leader.acquire(0)
    assert standby.stand_by(0) != ""
    watched = Watched(leader, standby)
    with watched.watching():
        await_true(lambda: 0 in watched.last, "the first one is seen to be sure")
        for member in ensemble.members[:2]:
            member.kill()
        await_true(lambda: not leader.sure(), "it stops writing")
        await_true(lambda: not leader.held(), "it ends")
        assert not try_to_lead(standby), "nobody can lead without a quorum"
        leader.release()
        for member in ensemble.members[:2]:
            member.start()
        await_true(lambda: try_to_lead(standby), "the standby leads")
        await_true(lambda: 1 in watched.last, "and is sure of it")
    assert not watched.overlap()
    assert standby.sure()


def cut_off(leader: ZooKeeperLeadership, standby: ZooKeeperLeadership, proxy: TcpProxy) -> Watched:
    """A leader behind a proxy that forwards nothing any more, and a standby that isn't."""
    leader.acquire(0)
    watched = Watched(leader, standby)
    with watched.watching():
        await_true(lambda: 0 in watched.last, "the first one is seen to be sure")
        proxy.half_open()
        await_true(lambda: try_to_lead(standby), "the standby leads")
        await_true(lambda: 1 in watched.last, "and is sure of it")
    return watched


@pytest.fixture
def cut(
    zookeeper: EmbeddedZooKeeper, ensemble_settings: Coordination
) -> Iterator[tuple[TcpProxy, Coordination]]:
    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        yield proxy, replace(ensemble_settings, hosts=f"127.0.0.1:{proxy.port}")


def test_a_leader_cut_off_stops_before_another_leads(
    cut: tuple[TcpProxy, Coordination], ensemble_settings: Coordination, contenders: Contenders
) -> None:
    proxy, behind = cut
    leader, standby = contenders(behind), contenders(ensemble_settings)
    watched = cut_off(leader, standby, proxy)
    assert not watched.overlap()
    proxy.heal()
    await_true(lambda: not leader.held(), "it learns that it was replaced")
    assert standby.sure()


class Trusting(ZooKeeperLeadership):
    """Believes in its lease until it is told that its session expired, as a session's state alone would have it."""

    def acquire(self, above_epoch: int) -> Lease:
        lease, grant = super().acquire(above_epoch), self._grant
        assert grant is not None
        # Its grant reads no clock either: that would close the session as soon as another can lead.
        grant.__dict__["held"] = lambda: not grant._lost
        return lease

    def sure(self) -> bool:
        return self.held()


def test_a_leader_without_a_clock_of_its_own_is_caught(
    cut: tuple[TcpProxy, Coordination], ensemble_settings: Coordination, contenders: Contenders
) -> None:
    proxy, behind = cut
    leader = Trusting(behind, "shop")
    assert cut_off(leader, contenders(ensemble_settings), proxy).overlap()
    proxy.heal()
    await_true(lambda: not leader.sure(), "it is told")
    leader.release()
