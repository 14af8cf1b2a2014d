"""A login by SASL (DIGEST-MD5): the server knows the user, nodes are open to it only, a wrong password is
refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from migrator.adapters.coordination.zookeeper import connection
from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.requests import ZooKeeperRequests
from migrator.embedded.java import java_home
from migrator.embedded.process import scratch_directory
from migrator.embedded.zookeeper import EmbeddedZooKeeper
from migrator.errors import ConnectionFailed
from migrator.model.coordination import Coordination
from migrator.model.requests.request import WHOLE
from tests.contract.coordination.requests_contract import TABLE

pytestmark = pytest.mark.integration
pytest.importorskip("puresasl", reason="the extra sasl (pure-sasl) is not installed")
_JAAS = """
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_mig="geheim"
    user_other="anders";
};
"""


@pytest.fixture(scope="module")
def with_users() -> Iterator[Coordination]:
    """A server with two users."""
    with scratch_directory("migrator-zookeeper-sasl-") as folder:
        jaas = folder / "jaas.conf"
        jaas.write_text(_JAAS)
        settings = {"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
        jvm = [f"-Djava.security.auth.login.config={jaas}"]
        with EmbeddedZooKeeper(folder / "zk", java_home=java_home(), settings=settings, jvm=jvm) as server:
            yield Coordination(server.hosts, auth="sasl", user="mig", password="geheim")


def test_nodes_of_a_user_are_its_own(with_users: Coordination, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        session = ZooKeeperSession(with_users, "shop")
        ZooKeeperRequests(session).update(lambda old: old.start((TABLE,), WHOLE))
        session.close()
    stranger = ZooKeeperSession(replace(with_users, user="other", password="anders"), "shop")
    with pytest.raises(ConnectionFailed, match="refuses"):
        ZooKeeperRequests(stranger).read()
    stranger.close()
    monkeypatch.setattr(connection, "_FIRST_ANSWER_S", 2.0)
    wrong = ZooKeeperSession(replace(with_users, password="falsch"), "shop")
    with pytest.raises(ConnectionFailed) as caught:
        ZooKeeperRequests(wrong).read()
    assert "falsch" not in str(caught.value)
    wrong.close()
