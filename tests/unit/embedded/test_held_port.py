"""A port that one test run has chosen isn't found free by another one, also before its server listens."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

import pytest

from migrator.embedded.process import LOCALHOST, HeldPort
from migrator.errors import MigratorError


@pytest.fixture
def same_order(monkeypatch: pytest.MonkeyPatch) -> Sequence[int]:
    """Everybody who looks for a port tries these, in this order."""
    ports = [HeldPort().number for _ in range(2)]
    monkeypatch.setattr(random.SystemRandom, "sample", lambda *_: ports)
    return ports


def test_a_port_is_held_until_nobody_wants_it(same_order: Sequence[int]) -> None:
    first = HeldPort()
    second = HeldPort()
    assert [first.number, second.number] == same_order
    with pytest.raises(MigratorError, match="no free TCP port"):
        HeldPort()
    del first
    assert HeldPort().number == same_order[0]


def test_a_server_may_listen_on_it_and_come_back(same_order: Sequence[int]) -> None:
    held = HeldPort()
    for _ in range(2):
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((LOCALHOST, held.number))
            server.listen()
            with socket.create_connection((LOCALHOST, held.number), 5):
                assert HeldPort().number == same_order[1]
        with pytest.raises(ConnectionRefusedError):  # down: holding it answers nobody
            socket.create_connection((LOCALHOST, held.number), 5)
        assert HeldPort().number == same_order[1]
