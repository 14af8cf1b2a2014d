"""Whole runs that meet another log than theirs: another event log, source, or ledger of the target."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator import config as configuration
from migrator import wiring
from migrator.adapters.files.layout import Layout
from migrator.adapters.files.manifest_file import newest_manifest
from migrator.adapters.target_postgres import target as postgres_target
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import EventLogError, GapError, MigratorError, TargetError
from migrator.model.coordination import Coordination
from migrator.run import resume
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from scenarios.orders.old_schema import create
from tests.integration import run_project
from tests.integration.restored import Snapshots
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database, embedded_postgres

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 400
SMALL = (
    "\n[capture]\nchunk_rows = 50\nchunk_rows_max = 50\nsegment_rows = 50\ndump_share = 1.0\n"
    "[apply]\nbatch_rows = 100\n"
)
OTHER_LOG = "isn't the one that the target goes on from"


class Stopped(Exception):
    """What a run meets in place of a kill."""


def broken_off(project: Project, point: str, times: int, captured: int = 0) -> None:
    """A run in this process that ends at a named point, once so many segments were captured."""
    left, log = times, Layout.of(configuration.load(project.config).event_log())

    def enough() -> bool:
        newest = newest_manifest(log)
        return newest is not None and newest.number >= captured

    def step(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            await_true(lambda: not captured or enough(), "it has captured")
            raise Stopped

    with pytest.raises(Stopped):
        Migration(replace(wiring.parts(configuration.load(project.config)), step=step)).run(Stopping())


def killed(project: Project, point: str) -> None:
    """A run by the command line, killed at a named point."""
    process = project.process("run", "--plain", crash_at=point)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == -signal.SIGKILL, output


def elsewhere(project: Project, name: str, *, state: bool = False) -> Project:
    """The project on another machine: with an empty state folder, or a copy of this one."""
    folder = project.config.parent
    ignored = None if state else shutil.ignore_patterns(".migrator")
    shutil.copytree(folder, folder.with_name(name), ignore=ignored)
    return replace(project, config=folder.with_name(name) / project.config.name)


def pointed(project: Project, side: str, database: Database) -> Project:
    """The project with another source or target."""
    text, was = project.config.read_text(), getattr(project, side)
    assert text.count(f"port = {was.port}") == 1
    project.config.write_text(text.replace(f"port = {was.port}", f"port = {database.port}"))
    return replace(project, **{side: database})


def write(database: Database, *ids: int) -> None:
    """Changes and deletes rows, by commits of their own."""
    for each in ids:
        database.execute(
            f"UPDATE orders SET items = items + 1000 WHERE id = {each}",
            f"DELETE FROM orders WHERE id = {each + 1}",
        )


def ends_equal(project: Project) -> None:
    project.run_here()
    assert project.differences() == []


def refused(project: Project, error: type[MigratorError], what: str) -> MigratorError:
    """Each time, and before anything was written."""
    before = target_of(project)
    for _ in range(2):
        with pytest.raises(error, match=what) as caught:
            project.run_here()
        assert target_of(project) == before
    return caught.value


def target_of(project: Project) -> tuple[object, ...]:
    rows = project.new.query("SELECT * FROM purchase ORDER BY purchase_id")
    return rows, project.new.query("SELECT segment, segment_id FROM migrator.ledger")


def moved_away(project: Project, error: MigratorError) -> None:
    """Follows the remedy."""
    assert re.search(r"move the (state folder's eventlog|event log's directory) away", error.remedy)
    log = Path(configuration.load(project.config).event_log())
    shutil.move(log, log.with_name(f"away-{len(list(log.parent.iterdir()))}"))


def project_of(folder: Path, old: Database, new: Database) -> Project:
    create(scenario_database(old), ROWS)
    made = run_project.make(folder, old, new)
    made.config.write_text(made.config.read_text() + SMALL)
    return made


@pytest.fixture
def one(tmp_path: Path, old_maria: Database, new_pg: Database, spark: SparkSession) -> Project:
    """Machine 1: of a source that keeps its log for everybody."""
    return project_of(tmp_path / "one", old_maria, new_pg)


def test_a_machine_that_comes_back_after_another_went_on_is_refused_and_its_remedy_works(
    one: Project,
) -> None:
    broken_off(one, "apply.committed", 2)
    write(one.old, 3, 390)
    two = elsewhere(one, "two")
    ends_equal(two)
    write(one.old, 5, 380)
    moved_away(one, refused(one, EventLogError, OTHER_LOG))
    ends_equal(one)
    write(one.old, 7, 370)
    moved_away(two, refused(two, EventLogError, OTHER_LOG))
    ends_equal(two)


def test_compared_by_number_alone_it_would_lose_rows(one: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the other machine's segments are smaller."""
    two = elsewhere(one, "two")
    two.config.write_text(two.config.read_text().replace(" = 50\n", " = 10\n"))
    broken_off(one, "apply.committed", 1, captured=ROWS // 50)
    broken_off(two, "apply.committed", 1)
    monkeypatch.setattr(resume, "continues", lambda *told: "")
    monkeypatch.setattr(postgres_target, "due", lambda held, segment, link: held.segment < segment)
    one.run_here()
    assert one.differences() != []


def test_with_coordination_it_captures_anew_by_itself(one: Project, ensemble_settings: Coordination) -> None:
    section = f'\n[coordination]\nhosts = "{ensemble_settings.hosts}"\npath = "{ensemble_settings.path}"\n'
    one.config.write_text(one.config.read_text() + section)
    broken_off(one, "apply.committed", 2)
    two = elsewhere(one, "two")
    write(one.old, 3, 390)
    broken_off(two, "apply.committed", 2)
    write(one.old, 5, 380)
    ends_equal(one)
    assert Path(f"{configuration.load(one.config).event_log()}.replaced").is_dir()
    write(one.old, 7, 370)
    ends_equal(two)


def test_a_copied_state_folder_goes_on_until_the_other_has_written(one: Project) -> None:
    broken_off(one, "apply.committed", 2)
    copy, backup = elsewhere(one, "copy", state=True), elsewhere(one, "backup", state=True)
    ends_equal(copy)
    write(one.old, 3, 390)
    moved_away(one, refused(one, EventLogError, OTHER_LOG))
    ends_equal(one)
    shutil.rmtree(one.config.parent / ".migrator")
    shutil.copytree(backup.config.parent / ".migrator", one.config.parent / ".migrator")
    write(one.old, 5, 380)
    moved_away(one, refused(one, EventLogError, OTHER_LOG))
    ends_equal(one)


class Own:
    """A PostgreSQL server of a test's own, which is put back to a copy of its disk, or copied."""

    def __init__(self, stack: ExitStack, name: str):
        self._stack, self._name = stack, name
        self.folder = Path(stack.enter_context(scratch_directory("migrator-which-"))) / "pg"
        self.server: EmbeddedPostgres = stack.enter_context(embedded_postgres(self.folder))
        self.server.create_database(name)
        self.snapshots = Snapshots(self.server, self.folder)

    def database(self, server: EmbeddedPostgres | None = None) -> Database:
        there = server or self.server
        return Database(there.host, there.port, self._name, there.superuser, "", "postgresql")

    def copied(self) -> Database:
        """A second server with the same history up to now."""
        folder = Path(self._stack.enter_context(scratch_directory("migrator-which-"))) / "pg"
        self.server.stop()
        subprocess.run(["cp", "-a", str(self.folder), str(folder)], check=True)
        self.server.start()
        return self.database(self._stack.enter_context(embedded_postgres(folder)))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def test_a_target_put_back_or_copied_goes_on_from_its_own_ledger_or_is_refused(
    tmp_path: Path, old_maria: Database, stack: ExitStack, spark: SparkSession
) -> None:
    new = Own(stack, "new")
    one = project_of(tmp_path / "one", old_maria, new.database())
    broken_off(one, "apply.committed", 2)
    twin = new.copied()
    write(one.old, 3, 390)
    ends_equal(one)
    new.snapshots.take()
    write(one.old, 5, 380)
    broken_off(one, "apply.committed", 1)
    new.snapshots.restore()
    ends_equal(one)  # the event log has the rest

    one = pointed(one, "new", twin)
    moved_away(one, refused(one, EventLogError, "no longer in the event log"))
    ends_equal(one)
    one = pointed(one, "new", new.database())
    write(one.old, 7, 370)
    moved_away(one, refused(one, EventLogError, OTHER_LOG))
    ends_equal(one)


def test_a_target_put_back_while_we_run_gets_no_gap(
    tmp_path: Path, old_maria: Database, stack: ExitStack, spark: SparkSession
) -> None:
    new = Own(stack, "new")
    one = project_of(tmp_path / "one", old_maria, new.database())
    left = 2

    def step(name: str) -> None:
        nonlocal left
        if name == "apply.committed":
            left -= 1
            if left == 1:
                new.snapshots.take()
            elif left == -1:
                new.snapshots.restore()

    with pytest.raises(TargetError, match="stand where this run left it"):
        Migration(replace(wiring.parts(configuration.load(one.config)), step=step)).run(Stopping())
    moved_away(one, refused(one, EventLogError, "no longer in the event log"))
    ends_equal(one)


def test_a_copy_of_the_source_is_refused_once_either_went_its_own_way(
    tmp_path: Path, new_pg: Database, stack: ExitStack, spark: SparkSession
) -> None:
    old = Own(stack, "old")
    one = project_of(tmp_path / "one", old.database(), new_pg)
    ends_equal(one)
    copy = old.copied()
    write(one.old, 3, 390)
    ends_equal(one)
    write(copy, 5, 380, 360)
    copy.execute(
        "CREATE TABLE filler (x text)",
        "INSERT INTO filler SELECT repeat('x', 500) FROM generate_series(1, 4000)",
    )
    refused(pointed(one, "old", copy), GapError, "isn't the log that was read")
    same = replace(pointed(replace(one, old=copy), "old", one.old))
    write(same.old, 7)
    ends_equal(same)
