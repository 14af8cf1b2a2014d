"""Several processes with ``--ha``: one leads, the others take over, on shared and on separate state folders."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.leadership import ZooKeeperLeadership
from migrator.adapters.coordination.zookeeper.requests import ZooKeeperRequests
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import newest_manifest, read_manifest
from migrator.config import project as configuration
from migrator.errors import FencedError, HalfResetError
from migrator.model.coordination import Coordination
from migrator.model.requests.request import RequestBook
from migrator.wiring import parts as wiring
from migrator.wiring.observed import status as observed
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]
ROWS = 2000
PATIENCE_S = 240.0
"""Two processes start Spark, perhaps on a busy machine."""


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database, ensemble_settings: Coordination) -> Project:
    create(scenario_database(old_pg), ROWS)
    made = run_project.make(tmp_path / "here", old_pg, new_pg)
    section = (
        f'\n[coordination]\nhosts = "{ensemble_settings.hosts}"\npath = "{ensemble_settings.path}"\n'
        "session_s = 6\n"
    )
    made.config.write_text(made.config.read_text() + section)
    # Else a stopped process keeps the slot for a minute.
    old_pg.execute(f"ALTER DATABASE {old_pg.database} SET wal_sender_timeout = '4s'")
    return made


def elsewhere(project: Project) -> Project:
    """The same project on "another machine": with a state folder of its own."""
    folder = project.config.parent
    copy = folder.with_name("there")
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".migrator"))
    return replace(project, config=copy / project.config.name)


class Runs:
    """Processes of ``migrator run --ha``, killed at the test's end."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[str]] = []

    def start(self, project: Project) -> subprocess.Popen[str]:
        self.started.append(project.process("run", "--ha", "--plain"))
        return self.started[-1]


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs()
    yield made
    for process in made.started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        print(process.communicate()[0])  # shown if the test failed


@pytest.fixture
def writers(project: Project) -> Iterator[OrderWriters]:
    made = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=100)
    made.start()
    yield made
    made.stop()


def status(project: Project) -> observed.Status:
    return observed.status(configuration.load(project.config))


def await_leader(project: Project, process: subprocess.Popen[str]) -> None:
    """Until a process leads and has brought something of its own into the target."""
    await_true(lambda: f"process {process.pid} " in status(project).leader, "it leads", PATIENCE_S)
    begun = status(project).ledger
    segment = begun.segment if begun is not None else 0

    def applied() -> bool:
        ledger = status(project).ledger
        return ledger is not None and ledger.segment > segment

    await_true(applied, "it applies", PATIENCE_S)


def await_standby(project: Project, process: subprocess.Popen[str]) -> None:
    await_true(
        lambda: any(f"process {process.pid} " in each for each in status(project).standbys),
        f"process {process.pid} stands by",
        PATIENCE_S,
    )


def end_equal(project: Project, writers: OrderWriters) -> None:
    """The writers stop, the target catches up and holds what the source does."""
    assert writers.stop().row_changes > 0
    settings = configuration.load(project.config)
    position = wiring.source_position(settings)
    await_true(lambda: wiring.applied_reaches(settings, position), "the target holds everything", PATIENCE_S)
    assert project.differences() == []


def _waiting(project: Project) -> int:
    """Segments that the target hasn't applied, by the event log itself.

    An onlooker elsewhere knows of it by a hint, once a second. Where batches are applied once a second, too, each
    hint may come just behind a batch, for minutes.
    """
    ledger, newest = (
        status(project).ledger,
        newest_manifest(Layout.of(configuration.load(project.config).event_log())),
    )
    return newest.number - ledger.segment if newest is not None and ledger is not None else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "shared", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["own event logs", "one event log"]
)
def test_a_sleeping_leader_is_replaced_wakes_up_and_leads_again(
    shared: bool, project: Project, runs: Runs, writers: OrderWriters, spark: SparkSession
) -> None:
    text = project.config.read_text()
    project.config.write_text(f"{text}shared_event_log = {str(shared).lower()}\n[apply]\ninterval_s = 1\n")
    there = project if shared else elsewhere(project)
    log = configuration.load(project.config).event_log()
    first = runs.start(project)
    await_leader(project, first)
    second = runs.start(there)
    await_standby(there, second)
    if not shared:
        assert status(there).hint is not None, "another machine has no other way to know"
        assert status(there).dumps == status(project).dumps
    await_true(lambda: _waiting(project) > 2, "captured, and not applied")
    first.send_signal(signal.SIGSTOP)
    left, slept = newest_manifest(Layout.of(log)), status(project).ledger
    assert left is not None
    assert slept is not None
    assert left.number > slept.segment

    await_leader(there, second)
    if shared:
        kept = read_manifest(Layout.of(log), left.number)
        assert kept in (left, None), "it went on behind the last segment of the first"
    first.send_signal(signal.SIGCONT)
    await_standby(project, first)
    second.kill()
    await_leader(project, first)
    assert Path(f"{log}.replaced").is_dir() is not shared, (
        "its own event log is not what the target has applied"
    )
    ledger = status(project).ledger
    assert ledger is not None
    assert ledger.epoch >= slept.epoch + 2
    slots = project.config.parent / ".migrator" / "slots"
    assert [each.name for each in slots.iterdir()] == [str(ledger.epoch)], (
        "each leader has a folder of its own"
    )
    end_equal(project, writers)
    first.send_signal(signal.SIGTERM)
    output, _ = first.communicate(timeout=120)
    assert first.returncode == 0, output


def test_without_ha_a_second_process_is_refused_by_name(project: Project) -> None:
    settings = configuration.load(project.config)
    assert settings.coordination is not None
    leader = ZooKeeperLeadership(settings.coordination, settings.name)
    lease = leader.acquire(0)
    with pytest.raises(FencedError, match="already being run") as caught:
        elsewhere(project).run_here()
    assert lease.owner.rpartition(":")[2] in caught.value.cause
    leader.release()


@pytest.mark.slow
def test_a_reset_is_refused_beside_processes_of_other_machines_and_half_done_refuses_them(
    project: Project, spark: SparkSession
) -> None:
    settings, there = configuration.load(project.config), elsewhere(project)
    coordination = settings.coordination
    assert coordination is not None
    project.run_here()
    project.command("dump", "start", "--table", "orders")
    before = status(project).ledger
    assert before is not None
    other = ZooKeeperLeadership(coordination, settings.name)
    other.acquire(before.epoch)
    with pytest.raises(FencedError, match="the migration runs") as caught:
        project.command("reset", "--yes")
    assert caught.value.cause.endswith(" leads")
    other.release()
    waiting = ZooKeeperLeadership(coordination, settings.name)
    waiting.stand_by(0.0)
    with pytest.raises(FencedError, match="the migration runs") as caught:
        project.command("reset", "--yes")
    assert caught.value.cause.endswith(" stands by")
    waiting.release()

    process = project.process("reset", "--yes", crash_at="reset.marked")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, output
    await_true(lambda: not leads(coordination, settings.name), "its session ends", PATIENCE_S)
    with pytest.raises(HalfResetError):
        there.run_here()
    assert project.command("reset", "--yes") == 0
    assert not settings.state.exists()
    assert ZooKeeperRequests(ZooKeeperSession(coordination, settings.name)).read() == RequestBook()
    there.run_here()
    assert there.differences() == []
    after = status(there).ledger
    assert after is not None
    assert after.epoch > before.epoch, "no leader of before has a higher one"


def leads(coordination: Coordination, name: str) -> str:
    looking = ZooKeeperLeadership(coordination, name)
    try:
        return looking.holder()
    finally:
        looking.release()
