"""Killed processes that come back to another log than theirs: the event log, the source's, the target's ledger.

What a kill leaves is no clean end: segments that the ledger doesn't know, a target transaction that is gone, a slot
that the server takes for used. ``test_which_log.py`` has the same kinds without kills.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.postgres import EmbeddedPostgres, postgres_installation
from migrator.embedded.process import scratch_directory
from migrator.errors import EventLogError, GapError, MigratorError
from tests.integration.run_project import Project
from tests.integration.runs.which_log import machines
from tests.integration.sources.restored import Snapshots
from tests.servers import Database, PostgresServer, embedded_mariadb, embedded_postgres, fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ANOTHER = "isn't the log that was read"
GONE = "no longer in the event log"


def killed(project: Project, point: str) -> None:
    """A process whose run SIGKILL ends at the point. The server may take it for alive a while longer."""
    process = project.process("run", "--plain", "--until", "caught-up", crash_at=point)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, f"{point} was never reached:\n{output}"
    if project.old.kind == "postgresql":
        machines.await_seen(project)


def ended(project: Project, what: str) -> MigratorError:
    """Each time, by name. What was captured before may still be applied."""
    for _ in range(2):
        with pytest.raises(MigratorError, match=what) as caught:
            project.run_here()
    return caught.value


def anew(project: Project) -> None:
    """Follows docs/how-to/start-anew.md."""
    assert project.command("reset", "--yes") == 0
    machines.ends_equal(project)


@pytest.fixture(params=["old_maria", "old_pg"])
def one(request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database, spark: SparkSession) -> Project:
    """Machine 1."""
    return machines.project_of(tmp_path / "one", request.getfixturevalue(request.param), new_pg)


@pytest.mark.parametrize("one", ["old_maria"], indirect=True)
def test_killed_machines_that_come_back_to_a_target_which_another_moved_lose_nothing(one: Project) -> None:
    killed(one, "segment.created:2")  # in a dump; the event log is ahead of the ledger
    machines.write(one.old, 3, 110)
    two = machines.elsewhere(one, "two")
    killed(two, "apply.committed:1")
    machines.leave_its_log(one)
    killed(one, "target.moved:1")  # the segment is in its event log, the transaction is gone
    machines.write(one.old, 7, 90)
    machines.ends_equal(two)  # nobody else has moved the target
    machines.leave_its_log(one)
    machines.ends_equal(one)


@pytest.mark.parametrize("one", ["old_maria"], indirect=True)
def test_a_cloned_state_folder_that_two_processes_use_in_turn_loses_nothing(one: Project) -> None:
    killed(one, "target.merged:2")
    copy = machines.elsewhere(one, "copy", state=True)
    machines.write(one.old, 3, 110)
    killed(copy, "target.moved:1")
    machines.write(one.old, 5, 100)
    killed(one, "target.moved:1")
    machines.write(one.old, 7, 90)
    machines.ends_equal(one)  # by its own segments, whatever the copy has under their numbers
    machines.leave_its_log(copy)
    machines.write(one.old, 9, 80)
    machines.ends_equal(copy)
    machines.leave_its_log(one)
    machines.ends_equal(one)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def dumped(database: Database, file: Path) -> None:
    _postgres_tool("pg_dump", "--format=custom", f"--file={file}", f"--dbname={database.dsn}")


def restored(server: PostgresServer, database: Database, file: Path) -> None:
    """Drops the database, with its slot, and restores it from the file: other tables of the same names."""
    server.drop(database)
    server.create(database.database)
    _postgres_tool("pg_restore", "--exit-on-error", f"--dbname={database.dsn}", str(file))


def _postgres_tool(name: str, *arguments: str) -> None:
    subprocess.run([postgres_installation() / "bin" / name, *arguments], check=True, timeout=120)


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_a_source_whose_disk_was_put_back_under_a_killed_run_is_refused_until_it_is_started_anew(
    kind: str, tmp_path: Path, new_pg: Database, stack: ExitStack, spark: SparkSession
) -> None:
    folder = Path(stack.enter_context(scratch_directory("migrator-killed-"))) / "server"
    server: EmbeddedPostgres | EmbeddedMariaDB = (
        stack.enter_context(embedded_postgres(folder))
        if kind == "postgresql"
        else stack.enter_context(embedded_mariadb(folder))
    )
    server.create_database("old")
    old = Database(server.host, server.port, "old", server.superuser, server.password or "", kind)
    one = machines.project_of(tmp_path / "one", old, new_pg)
    killed(one, "apply.committed:2")
    snapshots = Snapshots(server, folder)
    snapshots.take()
    machines.write(old, 3, 110)
    killed(one, "target.committed:2")
    snapshots.restore()
    machines.write(old, 5, 100, 80, 60, 40)
    if kind == "postgresql":  # beyond our place in the log
        machines.fill_log(old)
    assert "start the migration anew" in machines.refused(one, GapError, ANOTHER).remedy
    anew(one)


def test_a_source_that_a_dump_restored_under_a_killed_run_is_refused_until_it_is_started_anew(
    tmp_path: Path, old_pg: Database, postgres: PostgresServer, new_pg: Database, spark: SparkSession
) -> None:
    """The server's log is the same one; its tables are others, and the slot went with the database."""
    one = machines.project_of(tmp_path / "one", old_pg, new_pg)
    file = tmp_path / "old.dump"
    dumped(old_pg, file)
    killed(one, "apply.committed:2")
    machines.write(old_pg, 3, 110)
    killed(one, "capture.appended:1")
    restored(postgres, old_pg, file)
    machines.write(old_pg, 5, 100)
    assert "start the migration anew" in ended(one, "slot").remedy
    old_pg.query("SELECT pg_create_logical_replication_slot('migrator_orders', 'pgoutput')")
    machines.write(old_pg, 7, 90)
    assert "start the migration anew" in ended(one, ".").remedy
    anew(one)


def test_a_target_that_a_dump_restored_under_a_killed_run_goes_on_from_its_ledger_or_is_refused(
    tmp_path: Path, old_maria: Database, postgres_target: PostgresServer, spark: SparkSession
) -> None:
    with fresh_database(postgres_target, "new") as new:
        one = machines.project_of(tmp_path / "one", old_maria, new)
        killed(one, "apply.committed:2")
        early, late = tmp_path / "early.dump", tmp_path / "late.dump"
        dumped(new, early)
        machines.write(one.old, 3, 110)
        machines.ends_equal(one)
        dumped(new, late)
        machines.write(one.old, 5, 100)
        killed(one, "apply.committed:1")  # what it has applied isn't released yet
        restored(postgres_target, new, late)
        machines.ends_equal(one)
        machines.write(one.old, 7, 90)
        machines.ends_equal(one)
        restored(postgres_target, new, early)
        machines.moved_away(one, machines.refused(one, EventLogError, GONE))
        machines.ends_equal(one)
