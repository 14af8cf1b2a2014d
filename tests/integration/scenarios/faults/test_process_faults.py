"""Faults of the pipeline's processes: killed, stopped, and their children."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from migrator.errors import MigratorError
from scenarios.faults.process_tree import alive, descendants
from scenarios.faults.processes import await_true
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import (
    TIMEOUT_S,
    WITH_CHILDREN,
    StandInPipeline,
    make_world,
    placed,
)
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration


def test_the_pipeline_is_killed_and_started_again(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    kill = placed(world, "kill_pipeline")
    with pytest.raises(MigratorError, match="isn't running"):
        kill.fire()
    pipeline.start()
    pid = pipeline.pid
    kill.fire()
    assert not alive(pid)
    assert str(pid) in kill.effect()
    kill.heal()
    assert pipeline.pid != pid


def test_a_stopped_pipeline_stands_still_and_goes_on(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    stop = placed(world, "stop_continue", seconds=0.5)
    stop.fire()
    before = pipeline.pulse()[0]
    assert not threading.Event().wait(0.2)
    assert pipeline.pulse()[0] <= before + 1
    await_true(lambda: pipeline.pulse()[0] > before + 5, "it goes on by itself", TIMEOUT_S)
    stop.close()


@pytest.mark.parametrize("do", ["kill_jvm", "kill_worker"])
def test_the_right_child_is_killed(tmp_path: Path, own_postgres: PostgresServer, do: str) -> None:
    assert own_postgres.embedded is not None
    world, pipeline = make_world(tmp_path, _admin(own_postgres), own_postgres.embedded, program=WITH_CHILDREN)
    pipeline.start()
    try:
        await_true(lambda: len(descendants(pipeline.pid)) == 3, "its children run", TIMEOUT_S)
        before = descendants(pipeline.pid)
        kill = placed(world, do)
        kill.fire()
        (killed,) = [pid for pid in before if str(pid) in kill.effect()]
        assert not alive(killed)
        assert pipeline.running
    finally:
        pipeline.kill()


def test_a_worker_at_work_waits_for_its_end(tmp_path: Path, own_postgres: PostgresServer) -> None:
    assert own_postgres.embedded is not None
    world, pipeline = make_world(tmp_path, _admin(own_postgres), own_postgres.embedded, program=WITH_CHILDREN)
    pipeline.start()
    try:
        await_true(lambda: len(descendants(pipeline.pid)) == 3, "its children run", TIMEOUT_S)
        before = descendants(pipeline.pid)
        kill = placed(world, "kill_worker", at_work=True)
        kill.fire()
        assert kill.effect() == ""
        assert descendants(pipeline.pid) == before
        kill.heal()
        (killed,) = [pid for pid in before if str(pid) in kill.effect()]
        assert not alive(killed)
    finally:
        pipeline.kill()


def test_a_child_that_is_not_there_is_not_killed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    for do in ("kill_jvm", "kill_worker"):
        with pytest.raises(MigratorError, match="the pipeline has no"):
            placed(world, do).fire()


def _admin(server: PostgresServer) -> Database:
    return server.admin
