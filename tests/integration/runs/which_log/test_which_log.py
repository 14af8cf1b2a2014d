"""Whole runs that meet another log than theirs: another event log, source, or ledger of the target."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import newest_manifest
from migrator.config import project as configuration
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import EventLogError, FencedError, GapError, MigratorError, TargetError
from migrator.run.failure import Stopping
from migrator.run.lead import resume
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from tests.integration.run_project import Project
from tests.integration.runs.which_log import machines
from tests.integration.sources.restored import Snapshots
from tests.integration.waiting import await_true
from tests.servers import Database, embedded_mysql, embedded_postgres, unpacked_mysql

pytestmark = [pytest.mark.integration, pytest.mark.spark]

_NAMED = (FencedError, EventLogError, GapError, TargetError)


class Stopped(Exception):
    """What a run meets in place of a kill."""


def broken_off(project: Project, times: int, dumped: bool = False) -> None:
    """A run that ends after so many batches; ``dumped``: once all rows were captured."""
    left, log = times, Layout.of(configuration.load(project.config).event_log())

    def enough() -> bool:
        newest = newest_manifest(log)
        return newest is not None and not newest.checkpoint.dumping()

    def step(name: str) -> None:
        nonlocal left
        left -= name == "apply.committed"
        if left == 0:
            await_true(lambda: not dumped or enough(), "it has captured")
            raise Stopped

    with pytest.raises(Stopped):
        Migration(replace(wiring.parts(configuration.load(project.config)), step=step)).run(Stopping())


def pointed(project: Project, side: str, database: Database) -> Project:
    """The project with another source or target."""
    text, was = project.config.read_text(), getattr(project, side)
    assert text.count(f"port = {was.port}") == 1
    project.config.write_text(text.replace(f"port = {was.port}", f"port = {database.port}"))
    return replace(project, old=database) if side == "old" else replace(project, new=database)


def started_anew(project: Project) -> None:
    """Follows docs/how-to/start-anew.md."""
    if project.old.kind == "postgresql":
        project.old.query(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            " WHERE slot_name = 'migrator_orders'"
        )
    ledger = "migrator.ledger" if project.new.kind == "postgresql" else "migrator_ledger"
    project.new.execute(f"DELETE FROM {ledger} WHERE migration = 'orders'", "DELETE FROM purchase")
    shutil.rmtree(project.config.parent / ".migrator")
    assert project.command("check") == 0
    machines.ends_equal(project)


Server = EmbeddedPostgres | EmbeddedMySQL


class Own:
    """A server of a test's own, which is put back to a copy of its disk, or copied."""

    def __init__(self, stack: ExitStack, kind: str, name: str):
        self._stack, self._kind, self._name = stack, kind, name
        if kind == "mysql":
            unpacked_mysql()
        self.folder = Path(stack.enter_context(scratch_directory("migrator-which-"))) / "server"
        self.server = self._started(self.folder)
        self.server.create_database(name)
        self.snapshots = Snapshots(self.server, self.folder)

    def database(self, server: Server | None = None) -> Database:
        there = server or self.server
        return Database(there.host, there.port, self._name, there.superuser, "", self._kind)

    def copied(self) -> Database:
        """A second server with the same history up to now."""
        folder = Path(self._stack.enter_context(scratch_directory("migrator-which-"))) / "server"
        self.server.stop()
        subprocess.run(["cp", "-a", str(self.folder), str(folder)], check=True)
        self.server.start()
        return self.database(self._started(folder))

    def _started(self, folder: Path) -> Server:
        if self._kind == "postgresql":
            return self._stack.enter_context(embedded_postgres(folder))
        return self._stack.enter_context(embedded_mysql(folder))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture(params=["old_maria", pytest.param("old_pg", marks=pytest.mark.slow)])
def one(request: pytest.FixtureRequest, tmp_path: Path, new_pg: Database, spark: SparkSession) -> Project:
    """Machine 1."""
    return machines.project_of(tmp_path / "one", request.getfixturevalue(request.param), new_pg)


def test_a_machine_that_comes_back_after_another_went_on_is_refused_and_its_remedy_works(
    one: Project,
) -> None:
    broken_off(one, 2)
    machines.write(one.old, 3, 110)
    two = machines.elsewhere(one, "two")
    machines.ends_equal(two)
    machines.write(one.old, 5, 100)
    machines.leave_its_log(one)
    machines.ends_equal(one)
    machines.write(one.old, 7, 90)
    machines.leave_its_log(two)
    machines.ends_equal(two)


@pytest.mark.slow
@pytest.mark.parametrize("one", ["old_maria"], indirect=True)
def test_compared_by_number_alone_it_would_lose_rows(one: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the other machine's segments are smaller."""
    two = machines.elsewhere(one, "two")
    smaller = (
        two.config.read_text().replace(" = 20\n", " = 5\n").replace("batch_rows = 40", "batch_rows = 10")
    )
    two.config.write_text(smaller)
    broken_off(one, 1, dumped=True)
    broken_off(two, 1)
    monkeypatch.setattr(resume, "continues", lambda *told: "")
    monkeypatch.setattr(
        "migrator.adapters.targets.shared.target_writer.due",
        lambda held, segment, link: held.segment < segment,
    )
    one.run_here()
    assert one.differences() != []


@pytest.mark.slow
def test_a_copied_state_folder_goes_on_until_the_other_has_written(one: Project) -> None:
    broken_off(one, 2)
    copy = machines.elsewhere(one, "copy", state=True)
    machines.write(one.old, 3, 110)
    machines.ends_equal(copy)
    machines.write(one.old, 5, 100)
    machines.leave_its_log(one)
    machines.ends_equal(one)


@pytest.mark.slow
def test_two_copies_of_a_state_folder_that_run_at_once_lose_nothing(one: Project) -> None:
    """Locks are the folder's, so that both lead: the newer epoch's writes count, the other's are refused."""
    broken_off(one, 1)
    machines.write(one.old, 3, 110)
    copy, failures = machines.elsewhere(one, "copy", state=True), list[MigratorError]()

    def run(project: Project) -> None:
        try:
            project.run_here()
        except MigratorError as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in (one, copy)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(error, _NAMED) for error in failures), failures
    machines.write(one.old, 5, 100)
    refused: dict[str, MigratorError] = {}
    for each in (one, copy):
        try:
            machines.ends_equal(each)
        except (EventLogError, GapError) as error:
            refused[each.config.parent.name] = error
    assert len(refused) <= 1, refused
    assert one.differences() == []
    for each in (one, copy):
        told = refused.get(each.config.parent.name)
        if isinstance(told, GapError):  # a slot goes back to what the other's event log has
            assert "no event log which leads on was moved away or is on another machine" in told.remedy
        elif told is not None:
            machines.moved_away(each, told)
            machines.ends_equal(each)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_target_put_back_or_copied_goes_on_from_its_own_ledger_or_is_refused(
    kind: str, tmp_path: Path, old_maria: Database, stack: ExitStack, spark: SparkSession
) -> None:
    new = Own(stack, kind, "new")
    one = machines.project_of(tmp_path / "one", old_maria, new.database())
    broken_off(one, 2)
    twin = new.copied()
    machines.write(one.old, 3, 110)
    machines.ends_equal(one)
    new.snapshots.take()
    machines.write(one.old, 5, 100)
    broken_off(one, 1)
    new.snapshots.restore()
    machines.ends_equal(one)  # the event log has the rest

    one = pointed(one, "new", twin)
    machines.moved_away(one, machines.refused(one, EventLogError, "no longer in the event log"))
    machines.ends_equal(one)
    one = pointed(one, "new", new.database())
    machines.write(one.old, 7, 90)
    machines.leave_its_log(one)
    machines.ends_equal(one)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_copy_of_the_source_is_refused_once_either_went_its_own_way(
    kind: str, tmp_path: Path, new_pg: Database, stack: ExitStack, spark: SparkSession
) -> None:
    old = Own(stack, kind, "old")
    one = machines.project_of(tmp_path / "one", old.database(), new_pg)
    machines.ends_equal(one)
    copy = old.copied()
    machines.write(one.old, 3, 110)
    machines.ends_equal(one)
    machines.write(copy, 5, 100, 80, 60, 40)
    if kind == "postgresql":  # beyond our place in the log
        machines.fill_log(copy)
    there = pointed(one, "old", copy)
    machines.refused(there, GapError, "isn't the log that was read")
    back = pointed(there, "old", one.old)
    machines.write(back.old, 7)
    machines.ends_equal(back)
    started_anew(pointed(back, "old", copy))
