"""Room that runs out is told by metrics, alerts and page of a real run: the source's log, the state folder's disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.observe.watched import Watched, troubled
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

MIB = 1 << 20
BOUND_MIB = 256
LEFT = "SELECT safe_wal_size FROM pg_replication_slots WHERE slot_name LIKE 'migrator%'"
WRITE_8_MIB = (
    "SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1048576)) FROM generate_series(1, 8)"
)


def test_a_slot_about_to_be_lost_and_a_disk_that_fills_are_told(
    tmp_path: Path, folder: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    create(scenario_database(old_pg), 300)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    watched = Watched(project, folder)
    state = configuration.load(project.config).state
    old_pg.execute(f"ALTER SYSTEM SET max_slot_wal_keep_size = '{BOUND_MIB}MB'", "SELECT pg_reload_conf()")
    try:
        with (
            small_disk(state) as filler,
            watched.prometheus,
            watched.running(),
            old_pg.connect(autocommit=False) as hanging,
        ):
            watched.await_value('migrator_phase{phase="streaming"}', 1)
            watched.await_value("migrator_lag_seconds", 0)
            hanging.execute("UPDATE orders SET items = items + 1 WHERE id = 7")

            def write_log() -> None:
                while old_pg.query(LEFT)[0][0] > 0.2 * BOUND_MIB * MIB:
                    old_pg.execute(WRITE_8_MIB)

            def commit() -> None:
                hanging.commit()
                for _ in range(3):  # a slot lets go of its log at the next look at running transactions
                    old_pg.execute(WRITE_8_MIB, "CHECKPOINT")

            troubled(write_log, commit, watched, "MigratorSourceLogAlmostLost")
            troubled(
                lambda: filler.write_bytes(bytes(200 * MIB)), filler.unlink, watched, "MigratorDiskFilling"
            )
    finally:
        old_pg.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own for a folder, in memory, just large enough that nobody is told of it; a file to fill it."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1100M", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder / "filler"
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
