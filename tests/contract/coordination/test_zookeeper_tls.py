"""Encrypted sessions: certificates of both sides are verified, and whoever has the wrong ones is refused by
name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.adapters.coordination.zookeeper import connection
from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.requests import ZooKeeperRequests
from migrator.embedded.java import java_home
from migrator.embedded.process import HeldPort, scratch_directory
from migrator.embedded.zookeeper import EmbeddedZooKeeper
from migrator.errors import ConnectionFailed
from migrator.model.coordination import Coordination
from migrator.model.requests.request import RequestBook

pytestmark = pytest.mark.integration
CERTIFICATES = Path(__file__).parents[2] / "certificates"


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Coordination]:
    """A server that takes encrypted sessions of known clients, and how to reach it."""
    port = HeldPort()
    settings = {
        "secureClientPort": str(port.number),
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(CERTIFICATES / "server.pem"),
        "ssl.trustStore.location": str(CERTIFICATES / "ca.pem"),
    }
    with (
        scratch_directory("migrator-zookeeper-tls-") as folder,
        EmbeddedZooKeeper(folder / "zk", java_home=java_home(), settings=settings),
    ):
        yield Coordination(
            f"127.0.0.1:{port.number}",
            tls="verify-full",
            tls_ca=str(CERTIFICATES / "ca.pem"),
            tls_cert=str(CERTIFICATES / "client.pem"),
            tls_key=str(CERTIFICATES / "client_locked.key"),
            tls_key_password="schluessel",
        )


def test_both_certificates_are_verified(encrypted: Coordination, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ZooKeeperSession(encrypted, "shop")
    assert ZooKeeperRequests(session).read() == RequestBook()
    session.close()
    monkeypatch.setattr(connection, "_FIRST_ANSWER_S", 2.0)
    for wrong in (
        replace(encrypted, tls_ca=str(CERTIFICATES / "other_ca.pem")),
        replace(encrypted, hosts=encrypted.hosts.replace("127.0.0.1", "localhost")),
        replace(encrypted, tls_cert="", tls_key="", tls_key_password=None),
        replace(encrypted, tls_key_password="falsch"),
        replace(encrypted, tls="disable"),
    ):
        stranger = ZooKeeperSession(wrong, "shop")
        with pytest.raises(ConnectionFailed, match="can't be reached") as caught:
            ZooKeeperRequests(stranger).read()
        assert "falsch" not in str(caught.value)
        print(caught.value)
        stranger.close()
    by_authority = ZooKeeperSession(
        replace(encrypted, tls="verify-ca", hosts=encrypted.hosts.replace("127.0.0.1", "localhost")), "shop"
    )
    assert ZooKeeperRequests(by_authority).read() == RequestBook(), (
        "verify-ca doesn't ask for the host's name"
    )
    by_authority.close()
