"""Faults of the machine under the pipeline: disk, fsync, clock, descriptors, memory, processor."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from migrator.errors import MigratorError
from scenarios.faults.processes import await_true
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import TIMEOUT_S, StandInPipeline, placed, pulse_problem

pytestmark = pytest.mark.integration


def test_the_disk_is_full_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    full = placed(world, "disk_full", mb=16)
    with pytest.raises(MigratorError, match="wasn't prepared"):
        full.fire()
    full.prepare()
    try:
        pipeline.start()
        assert pipeline.pulse()[2] == "well"
        full.fire()
        # The file that it rewrites has its pages already; a new one gets none.
        with pytest.raises(OSError, match="No space left"):
            (world.config.parent / ".migrator" / "new").write_bytes(b"x" * 100_000)
        full.heal()
        (world.config.parent / ".migrator" / "new").write_bytes(b"x" * 100_000)
        assert "16 MB" in full.effect()
        pipeline.kill()
    finally:
        full.close()
    assert list((world.config.parent / ".migrator").iterdir()) == []


def test_fsync_fails_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    broken = placed(world, "fsync_error")
    assert broken.effect() == ""
    broken.fire()
    pulse_problem(pipeline, "Input/output error")
    broken.heal()
    assert "fsyncs refused" in broken.effect()
    pulse_problem(pipeline, "well")


def test_the_clock_is_off_from_when_it_fires(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    clock = placed(world, "clock", offset_s=-3600)
    pipeline.environment = clock.environment()
    pipeline.start()
    assert abs(pipeline.pulse()[1] - time.time()) < 60
    clock.fire()
    await_true(lambda: abs(pipeline.pulse()[1] + 3600 - time.time()) < 60, "the clock is off", TIMEOUT_S)
    clock.heal()
    await_true(lambda: abs(pipeline.pulse()[1] - time.time()) < 60, "the clock is right", TIMEOUT_S)


def test_a_clock_that_was_not_prepared_is_not_changed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    clock = placed(world, "clock", offset_s=3600)
    with pytest.raises(MigratorError, match="wasn't started with the clock's environment"):
        clock.fire()
    clock.environment()
    with pytest.raises(MigratorError, match="wasn't started with the clock's environment"):
        clock.fire()


def test_no_descriptor_is_left_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    few = placed(world, "descriptors", limit=3)
    few.fire()
    pulse_problem(pipeline, "Too many open files")
    few.heal()
    pulse_problem(pipeline, "well")


def test_a_limit_that_leaves_descriptors_is_no_fault(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    with pytest.raises(MigratorError, match="more can be"):
        placed(world, "descriptors", limit=400).fire()


def test_no_memory_is_left_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    none = placed(world, "out_of_memory")
    none.fire()
    pulse_problem(pipeline, "no memory")
    none.heal()
    pulse_problem(pipeline, "well")


def test_a_starved_process_gets_little_done(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    starve = placed(world, "starve_cpu", seconds=60, percent=2)
    starve.fire()
    await_true(lambda: "stopped 5 times" in starve.effect(), "it is stopped again and again", TIMEOUT_S)
    starve.heal()
    before = pipeline.pulse()[0]
    await_true(lambda: pipeline.pulse()[0] > before + 5, "it goes on", TIMEOUT_S)
    state = Path(f"/proc/{pipeline.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state != "T"
