"""Faults of logs: of the source's log and its slot, and of the event log that is delivered or restored again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from migrator.errors import MigratorError
from scenarios.faults.fault import state_folder
from scenarios.faults.processes import await_true
from scenarios.faults.session import execute
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import (
    TIMEOUT_S,
    StandInPipeline,
    as_test_database,
    make_world,
    placed,
)
from tests.servers import Database

pytestmark = pytest.mark.integration


def test_the_log_goes_on_in_another_file(world: World) -> None:
    rotate = placed(world, "rotate_log")
    rotate.fire()
    before, _, after = rotate.effect().partition(", now ")
    assert before != after


def test_a_purged_log_no_longer_holds_what_the_pipeline_needs(
    tmp_path: Path, database: Database, own_server: Any
) -> None:
    world, pipeline = make_world(tmp_path, database, own_server.embedded)
    pipeline.start()
    ending = threading.Event()

    def write() -> None:
        while not ending.wait(0.02):
            database.execute("DELETE FROM t", "INSERT INTO t VALUES (1, 'x')")

    if database.kind == "postgresql":
        database.execute("SELECT pg_create_logical_replication_slot('migrator_faults', 'pgoutput')")
    first = _log_begin(database)
    needed = _log_needed(database)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        purge = placed(world, "purge_log", side="source")
        purge.fire()
    finally:
        ending.set()
        writer.join()
        pipeline.kill()
    assert pipeline.starts == 2
    assert _log_begin(database) > first
    assert needed in purge.effect()


def _log_needed(database: Database) -> str:
    """The log that the pipeline still needs: the slot's place, or the newest file."""
    if database.kind == "mariadb":
        return str(database.query("SHOW MASTER STATUS")[0][0])
    return _log_begin(database)


def _log_begin(database: Database) -> str:
    if database.kind == "mariadb":
        return str(database.query("SHOW BINARY LOGS")[0][0])
    return str(database.query("SELECT confirmed_flush_lsn::text FROM pg_replication_slots")[0][0])


def test_a_slot_is_dropped_or_known_to_be_missing(world: World) -> None:
    drop = placed(world, "drop_slot")
    with pytest.raises(MigratorError, match="can't be placed here"):
        drop.fire()
    database = as_test_database(world)
    if database.kind == "postgresql":
        database.execute("SELECT pg_create_logical_replication_slot('migrator_faults', 'pgoutput')")
        drop.fire()
        assert database.query("SELECT * FROM pg_replication_slots") == []
        assert "migrator_faults" in drop.effect()


def segment(event_log: Path, number: int) -> None:
    (event_log / "data" / f"{number:010d}-1-0.parquet").write_text(f"data of {number}")
    (event_log / "segments" / f"{number:010d}.json").write_text(f"manifest of {number}")


def event_log_of(world: World, segments: int) -> Path:
    """An event log whose segments come one after the other and are released but for the newest."""
    event_log = world.config.parent / ".migrator" / "eventlog"
    kept = event_log.parent.glob("kept-*")
    (folder,) = list(kept)
    for name in ("data", "segments"):
        (event_log / name).mkdir(parents=True)
    for number in range(1, segments + 1):
        segment(event_log, number)
        await_true(
            (folder / "segments" / f"{number:010d}.json").exists, f"segment {number} is kept", TIMEOUT_S
        )
    for number in range(1, segments):
        (event_log / "data" / f"{number:010d}-1-0.parquet").unlink()
        (event_log / "segments" / f"{number:010d}.json").unlink()
    (event_log / "released").write_text(f"{segments - 1}\n")
    return event_log


def numbers(event_log: Path) -> list[int]:
    return sorted(int(path.stem) for path in (event_log / "segments").iterdir())


def test_applied_segments_are_delivered_again(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    again = placed(world, "redeliver", segments=3)
    again.prepare()
    event_log = event_log_of(world, 8)
    pipeline.start()
    again.fire()
    again.close()
    assert pipeline.starts == 2
    assert numbers(event_log) == [5, 6, 7, 8]
    assert (event_log / "released").read_text() == "4\n"
    assert (event_log / "data" / "0000000006-1-0.parquet").read_text() == "data of 6"
    assert again.effect().startswith("3 applied segments")


def test_an_old_event_log_is_restored(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    restore = placed(world, "restore_checkpoint", segments=3)
    restore.prepare()
    event_log = event_log_of(world, 8)
    pipeline.start()
    restore.fire()
    restore.close()
    assert pipeline.starts == 2
    assert numbers(event_log) == [4]
    assert (event_log / "released").read_text() == "3\n"


def test_a_restored_event_log_ends_before_the_target_however_far_capture_was(
    pg_world: tuple[World, StandInPipeline],
) -> None:
    world, pipeline = pg_world
    restore = placed(world, "restore_checkpoint")
    restore.prepare()
    event_log = event_log_of(world, 9)
    (event_log / "released").write_text("4\n")
    pipeline.start()
    restore.fire()
    restore.close()
    assert numbers(event_log) == [2]


@pytest.mark.parametrize(("how", "changed"), [("flip", "data"), ("tear", "data"), ("manifest", "segments")])
def test_a_segment_beyond_the_ledger_is_damaged(
    pg_world: tuple[World, StandInPipeline], how: str, changed: str
) -> None:
    world, pipeline = pg_world
    execute(
        world.target.direct,
        ["CREATE SCHEMA migrator", "CREATE TABLE migrator.ledger (segment bigint)",
         "INSERT INTO migrator.ledger VALUES (6)"],
    )  # fmt: skip
    damage = placed(world, "damage_segment", how=how)
    event_log = state_folder(world) / "eventlog"
    for folder in ("data", "segments"):
        (event_log / folder).mkdir(parents=True)
    for number in (7, 8):
        (event_log / f"segments/{number:010d}.json").write_text(f"manifest of {number}")
        (event_log / f"data/{number:010d}-1-0.parquet").write_text(f"data of {number}")
    before = {path: path.read_bytes() for path in event_log.glob("*/*")}
    pipeline.start()
    damage.fire()
    (different,) = [path for path, content in before.items() if path.read_bytes() != content]
    assert (different.parent.name, different.name[:10], pipeline.starts) == (changed, "0000000008", 2)
    execute(world.target.direct, ["UPDATE migrator.ledger SET segment = 8"])
    with pytest.raises(MigratorError, match="no segment beyond 8"):
        damage.fire()


def test_nothing_is_restored_where_nothing_was_kept(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    restore = placed(world, "restore_checkpoint")
    restore.prepare()
    pipeline.start()
    with pytest.raises(MigratorError, match="0 applied segments were kept"):
        restore.fire()
    restore.close()
