"""ZooKeeper keeps the contracts of leadership, dump requests and hints, and what only sessions have."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from migrator.adapters.coordination.zookeeper import connection
from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.hints import ZooKeeperHints
from migrator.adapters.coordination.zookeeper.leadership import ZooKeeperLeadership, seen
from migrator.adapters.coordination.zookeeper.requests import ZooKeeperRequests
from migrator.embedded.zookeeper import EmbeddedZooKeeper
from migrator.errors import ConnectionFailed, FencedError, MigratorError, RequestError
from migrator.model.coordination import Coordination
from migrator.model.requests.predicate import grammatical
from migrator.model.requests.request import WHOLE, RequestState, Scope
from migrator.model.table import Column, TableSchema
from migrator.run.progress import Progress
from migrator.run.request_check import CheckedRequests
from tests.contract.coordination.hints_contract import HintsContract, Places
from tests.contract.coordination.leadership_contract import Contender, LeadershipContract
from tests.contract.coordination.requests_contract import TABLE, RequestsContract, Stores
from tests.fix_zookeeper import SESSION_S, Contenders
from tests.integration.waiting import await_true

pytestmark = pytest.mark.integration


@pytest.fixture
def settings(ensemble_settings: Coordination) -> Coordination:
    return ensemble_settings


@pytest.fixture
def session(settings: Coordination) -> Iterator[Callable[[], ZooKeeperSession]]:
    """Sessions of as many processes as one likes."""
    made: list[ZooKeeperSession] = []

    def another() -> ZooKeeperSession:
        made.append(ZooKeeperSession(settings, "shop"))
        return made[-1]

    yield another
    for each in made:
        each.close()


@pytest.fixture
def contender(settings: Coordination, contenders: Contenders) -> Contender:
    return lambda: contenders(settings)


def expire(zookeeper: EmbeddedZooKeeper, leader: ZooKeeperLeadership) -> None:
    """Ends a leader's session behind its back: another client takes it over and closes it."""
    assert leader._session is not None
    client = KazooClient(hosts=zookeeper.hosts, client_id=leader._session.client().client_id)
    client.start()
    client.stop()
    client.close()


class TestLeadership(LeadershipContract):
    @pytest.fixture
    def contender(self, contender: Contender) -> Contender:
        return contender

    def test_an_expired_session_is_never_held_again(
        self, zookeeper: EmbeddedZooKeeper, contender: Callable[[], ZooKeeperLeadership]
    ) -> None:
        first, second = contender(), contender()
        lease = first.acquire(0)
        expire(zookeeper, first)
        await_true(lambda: not first.held(), "the leader knows")
        assert not first.sure()
        assert second.acquire(0).epoch == lease.epoch + 1
        first.release()
        assert second.held()
        assert second.sure()
        assert not first.held()

    def test_who_deletes_the_leaders_node_ends_its_lease(
        self, zookeeper: EmbeddedZooKeeper, settings: Coordination, contender: Contender
    ) -> None:
        leader, other = contender(), contender()
        leader.acquire(0)
        client = KazooClient(hosts=zookeeper.hosts)
        client.start()
        client.delete(f"{settings.root('shop')}/leader")
        other.acquire(0)
        await_true(lambda: not leader.held(), "a renewal is refused: another epoch was granted")
        assert other.held()
        client.stop()
        client.close()

    def test_a_standby_is_seen_and_told_of_its_turn(
        self, contender: Callable[[], ZooKeeperLeadership], session: Callable[[], ZooKeeperSession]
    ) -> None:
        leader, standby, onlooker = contender(), contender(), session()
        lease = leader.acquire(0)
        host, _, process = lease.owner.partition(":")
        assert standby.stand_by(0.05) == f"process {process} on {host}"
        assert seen(onlooker) == (f"process {process} on {host}", (f"process {process} on {host}",))
        leader.release()
        assert standby.stand_by(SESSION_S * 3) == ""
        standby.acquire(0)
        assert seen(onlooker)[1] == ()

    def test_an_epoch_that_is_no_number_is_refused_by_name(
        self, contender: Contender, session: Callable[[], ZooKeeperSession]
    ) -> None:
        leader, onlooker = contender(), session()
        leader.acquire(0)
        found = json.loads(onlooker.client().get(onlooker.path("leader"))[0])
        assert found["format"] == 1
        leader.release()
        onlooker.client().set(onlooker.path("epoch"), b'{"format": 2}')
        with pytest.raises(MigratorError, match="epoch in ZooKeeper") as caught:
            contender().acquire(0)
        assert "this version knows nodes of format 1" in caught.value.cause
        assert "newer one" in caught.value.remedy

    def test_who_takes_its_lease_for_lost_lets_another_lead_before_it_is_released(
        self, contender: Callable[[], ZooKeeperLeadership]
    ) -> None:
        """A process that hangs gives nothing up, and its client would keep the session alive."""
        leader, other = contender(), contender()
        leader.acquire(0)
        assert leader._grant is not None
        leader._grant._state(KazooState.LOST)
        await_true(lambda: other.stand_by(0.1) == "", "the node is gone")
        other.acquire(0)
        assert not leader.held()
        leader.release()
        assert other.held()

    def test_a_pause_of_the_server_leaves_doubt_and_then_certainty(
        self, zookeeper: EmbeddedZooKeeper, contender: Contender
    ) -> None:
        leader = contender()
        leader.acquire(0)
        zookeeper.kill()
        await_true(lambda: not leader.sure(), "it isn't sure without the ensemble")
        zookeeper.start()
        await_true(lambda: leader.sure() or not leader.held(), "it knows again")

        # One successor for all tries: a session each would soon be more than a server takes from one address (60).
        successor = contender()

        def taken() -> bool:
            try:
                successor.acquire(0)
            except FencedError:
                return False
            return True

        led_on = leader.held()
        if not taken():
            if led_on:
                return
            # It gave up before the server did: until its session is closed, nobody leads.
            await_true(taken, "somebody else may lead")
        assert not leader.sure(), "two lead"

    def test_a_server_may_grant_less_than_was_asked_for(
        self, zookeeper: EmbeddedZooKeeper, settings: Coordination
    ) -> None:
        session = ZooKeeperSession(Coordination(zookeeper.hosts, settings.path, 500.0), "shop")
        session.client()
        assert session.timeout_s == pytest.approx(10.0)  # 20 ticks
        session.close()


class TestRequests(RequestsContract):
    @pytest.fixture(autouse=True)
    def remember(self, session: Callable[[], ZooKeeperSession]) -> None:
        self.session = session

    def stores(self, directory: Path) -> Stores:
        return lambda: ZooKeeperRequests(self.session())

    def test_what_is_damaged_or_newer_is_named(self) -> None:
        session = self.session()
        store = ZooKeeperRequests(session)
        store.update(lambda old: old.start((TABLE,), WHOLE))
        for content in (b"", b"{}", b'{"format": 999}'):
            session.client().set(session.path("requests"), content)
            with pytest.raises(RequestError, match="can't be read") as caught:
                store.read()
            assert session.address in caught.value.where
            with pytest.raises(RequestError):
                store.update(lambda old: old.start((TABLE,), WHOLE))
            assert session.client().get(session.path("requests"))[0] == content

    def test_what_a_stranger_writes_into_the_node_meets_no_source(self) -> None:
        store, asked = ZooKeeperRequests(self.session()), []
        store.update(lambda old: old.start((TABLE,), Scope(predicate="name = 'a'")))
        good = store.read()
        attack = "name = 'a' OR (SELECT pg_sleep(9)) IS NULL"
        stranger, node = self.session(), self.session().path("requests")
        document = json.loads(stranger.client().get(node)[0])
        document["requests"][0]["predicate"] = attack
        stranger.client().set(node, json.dumps(document).encode())

        def source(table: TableSchema, scope: Scope) -> None:
            grammatical(scope.predicate, table, '"')
            asked.append(scope)

        schema = TableSchema(TABLE, (Column("name", "string", False, "text"),), ("name",))
        leader = CheckedRequests(store, [schema], source, lambda _: None, Progress())
        (forged,) = leader.read().requests
        assert (forged.state, asked) == (RequestState.FAILED, [])
        assert "predicate" in forged.reason
        store.update(lambda _: good)
        assert leader.read().running() == 1, "a good one is taken: the check can pass"
        assert asked == [Scope(predicate="name = 'a'")]

    def test_what_no_node_can_hold_is_refused_by_name(self) -> None:
        store = ZooKeeperRequests(self.session())
        many = Scope(keys=tuple((str(number),) for number in range(200_000)))
        with pytest.raises(RequestError, match="too large for ZooKeeper"):
            store.update(lambda old: old.start((TABLE,), many))
        assert store.update(lambda old: old.start((TABLE,), WHOLE)).started == 1, "the session lives on"


class TestHints(HintsContract):
    @pytest.fixture(autouse=True)
    def remember(self, session: Callable[[], ZooKeeperSession]) -> None:
        self.session = session

    def places(self, directory: Path) -> Places:
        return lambda: ZooKeeperHints(self.session())


def test_nodes_of_a_login_are_closed_to_others(zookeeper: EmbeddedZooKeeper) -> None:
    path = f"/tests/{uuid.uuid4().hex}"
    own = Coordination(zookeeper.hosts, path, SESSION_S, "digest", "mig", "geheim")
    session = ZooKeeperSession(own, "shop")
    ZooKeeperRequests(session).update(lambda old: old.start((TABLE,), WHOLE))
    for stranger in (
        Coordination(zookeeper.hosts, path, SESSION_S),
        Coordination(zookeeper.hosts, path, SESSION_S, "digest", "mig", "falsch"),
    ):
        other = ZooKeeperSession(stranger, "shop")
        with pytest.raises(ConnectionFailed, match="refuses") as caught:
            ZooKeeperRequests(other).read()
        assert "falsch" not in str(caught.value)
        assert not caught.value.retryable
        with pytest.raises(ConnectionFailed, match="refuses"):
            ZooKeeperLeadership(stranger, "shop").acquire(0)
        other.close()
    again = ZooKeeperSession(own, "shop")
    assert ZooKeeperRequests(again).read().started == 1
    for each in (session, again):
        each.close()


def test_nobody_there_is_an_error_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_ANSWER_S", 0.5)
    leader = ZooKeeperLeadership(Coordination("127.0.0.1:1", "/x", 1.0), "shop")
    with pytest.raises(ConnectionFailed, match="can't be reached") as caught:
        leader.acquire(0)
    assert caught.value.retryable
    assert "127.0.0.1:1/x/shop" in caught.value.where
