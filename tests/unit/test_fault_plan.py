"""When faults of a scenario count as fired, and when as having done something."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from scenarios.database import Database
from scenarios.fault_plan import FaultPlan
from scenarios.faults.points import PointServer
from scenarios.faults.processes import await_true
from scenarios.faults.proxy import TcpProxy
from scenarios.scenario import FaultSpec
from scenarios.world import Side, World

NOBODY = Database("postgresql", "127.0.0.1", 1, "none", "none")


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    """In front of a server that takes everything and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=take_all, args=(server,), daemon=True).start()
        with TcpProxy("127.0.0.1", server.getsockname()[1]) as found:
            yield found


def take_all(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        try:
            while connection.recv(100):
                pass
        except ConnectionResetError:  # as the fault wants
            return


def test_a_fault_that_waits_for_its_byte_was_fired_and_did_nothing_yet(
    proxy: TcpProxy, tmp_path: Path
) -> None:
    """Healed at that moment it would never happen, and the run would prove nothing."""
    side = Side(NOBODY, NOBODY, cast(Any, None), proxy)
    world = World(
        tmp_path, tmp_path / "migration.toml", side, side, cast(Any, None), lambda: 7, lambda pid: 0
    )
    spec = FaultSpec("reset_after", options={"side": "source", "bytes": 3, "direction": "to_server"})
    with PointServer(tmp_path / "steps.sock") as points:
        plan = FaultPlan([spec], world, points, lambda: None, lambda: None)
        assert not plan.all_fired()
        plan.prepare()
        assert plan.all_fired()
        assert not plan.all_happened()
        with socket.create_connection((proxy.host, proxy.port)) as client:
            client.sendall(b"12345")
            await_true(plan.all_happened, "the connection is reset behind its third byte")
        plan.close()
