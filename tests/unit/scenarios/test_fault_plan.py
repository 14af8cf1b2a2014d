"""When faults of a scenario count as fired, and when as having done something."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrator.run.steps import step_hook
from scenarios.database import Database
from scenarios.faults.fault import Options
from scenarios.faults.points import PointServer
from scenarios.faults.processes import StopContinue, await_true
from scenarios.play.act import Act
from scenarios.play.fault_plan import APPLIED, CAPTURE_BEGINS, FaultPlan
from scenarios.proxy.proxy import TcpProxy
from scenarios.scenario import FaultSpec, Scenario, WorkloadSpec
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


class NotStarted:
    """A pipeline before its first start."""

    running = False


def test_a_fault_that_is_there_from_the_start_finds_what_the_pipeline_will_be_started_with(
    tmp_path: Path,
) -> None:
    """The clock is off before the first process: its library must have been made by then."""
    side = Side(NOBODY, NOBODY, cast(Any, None), None)
    world = World(
        tmp_path, tmp_path / "migration.toml", side, side, cast(Any, NotStarted()), lambda: 7, lambda pid: 0
    )
    with PointServer(tmp_path / "steps.sock") as points:
        plan = FaultPlan(
            [FaultSpec("clock", options={"offset_s": 3600})], world, points, lambda: None, lambda: None
        )
        plan.prepare()
        assert plan.all_happened()
        assert Path(plan.environment()["LD_PRELOAD"]).exists()
        plan.close()


def test_a_point_without_a_fault_holds_nobody_while_another_fault_is_placed(
    proxy: TcpProxy, tmp_path: Path
) -> None:
    """A fault may wait for what a process does behind that point."""
    side = Side(NOBODY, NOBODY, cast(Any, None), proxy)
    world = World(
        tmp_path, tmp_path / "migration.toml", side, side, cast(Any, None), lambda: 7, lambda pid: 0
    )
    kept = threading.Event()
    with PointServer(tmp_path / "steps.sock") as points:
        plan = FaultPlan([], world, points, lambda: None, kept.set)
        step = step_hook(plan.environment())

        def place() -> None:
            thread = threading.Thread(target=step, args=(APPLIED,), daemon=True)
            thread.start()
            thread.join(10.0)
            assert not thread.is_alive()

        plan.quiet(place)
        assert kept.is_set()
        plan.close()


class Leader:
    """Stands for a stand-in that leads at once."""

    timeout_s = 10.0

    def __init__(self) -> None:
        self.killed = False

    def await_lead(self, world: World) -> None:
        """It does."""

    def leader(self) -> str:
        """Its name."""
        return "another"

    def kill(self) -> None:
        """Ends it."""
        self.killed = True


@pytest.mark.parametrize(("refused", "said"), [(True, "ended"), (False, "WROTE")])
def test_a_sleeper_that_wakes_up_may_be_refused_or_write(
    tmp_path: Path, proxy: TcpProxy, refused: bool, said: str
) -> None:
    """Whoever waits for the refusal alone never sees a product that doesn't refuse."""
    reaction = "exit 0" if refused else f"touch {tmp_path / 'written'}"
    ready = tmp_path / "ready"
    program = f"trap '{reaction}' CONT; touch {ready}; while :; do sleep 0.02; done"
    with subprocess.Popen(["/bin/sh", "-c", program], start_new_session=True) as sleeper:
        try:
            await_true(ready.exists, "the sleeper works")
            pipeline = cast(Any, SimpleNamespace(pid=sleeper.pid, running=True))
            side = Side(NOBODY, NOBODY, cast(Any, None), proxy)
            world = World(
                tmp_path,
                tmp_path / "migration.toml",
                side,
                side,
                pipeline,
                lambda: 7,
                lambda pid: int((tmp_path / "written").exists()),
            )
            fault = StopContinue(Options(FaultSpec("stop_continue", options={"seconds": 60})))
            fault.fire(world)
            leader = Leader()
            fault._standin = cast(Any, leader)
            fault.heal(world)
            assert leader.killed
            assert fault.effect().endswith(f"replaced by another, then the sleeper {said}")
            fault.close()
        finally:
            sleeper.kill()


def test_another_process_that_reads_the_log_is_no_sign_of_ours(tmp_path: Path) -> None:
    """A stand-in reads it as well: asked to stop before it has begun, ours would end like nobody's run."""
    with PointServer(tmp_path / "steps.sock", announce=[CAPTURE_BEGINS]) as points:
        pipeline = SimpleNamespace(pid=os.getpid() + 1, starts=1)
        scenario = Scenario("x", "X", WorkloadSpec("bank"))
        act = Act(scenario, *cast(Any, [None, pipeline, None, points, None]))
        step_hook(points.environment())(CAPTURE_BEGINS)
        assert not act._reading()
        pipeline.pid = os.getpid()
        assert act._reading()
