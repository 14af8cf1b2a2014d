"""Dump requests on real servers: they repair a damaged target under writers, survive a kill, and can be steered."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import RequestError
from migrator.model.progress import TableDump
from migrator.model.requests.request import RequestBook, RequestState
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 3000
DAMAGE = (
    "UPDATE purchase SET customer_id = -1, note = 'damaged' WHERE purchase_id <= 600",
    "DELETE FROM purchase WHERE purchase_id BETWEEN 601 AND 1200",
    "DELETE FROM purchase WHERE purchase_id IN (1501, 1503)",
    "UPDATE purchase SET amount_cents = 0 WHERE purchase_id > 2000 AND purchase_id % 7 = 0",
)
REQUESTS = (
    ("--table", "orders", "--from", "1", "--to", "1200"),
    ("--table", "orders", "--key", "1503", "--key", "1501", "--key", "01501", "--key", "99999999"),
    ("--table", "orders", "--where", "id > 2000 AND id % 7 = 0"),
)
DEADLINE_S = 120.0


@pytest.fixture(
    params=["postgres", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mariadb", "mysql"))]
)
def old(request: pytest.FixtureRequest) -> Database:
    name = {"postgres": "old_pg", "mariadb": "old_maria", "mysql": "old_mysql"}[request.param]
    database: Database = request.getfixturevalue(name)
    return database


@pytest.fixture
def from_postgres(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    """The same from PostgreSQL, for what doesn't depend on the engine."""
    return dumped(tmp_path, old_pg, new_pg)


@pytest.fixture
def project(tmp_path: Path, old: Database, new_pg: Database) -> Project:
    """A migration that has dumped everything, in chunks of 100 rows."""
    return dumped(tmp_path, old, new_pg)


def dumped(tmp_path: Path, old: Database, new_pg: Database) -> Project:
    create(scenario_database(old), ROWS)
    made = run_project.make(tmp_path / "project", old, new_pg)
    made.config.write_text(
        made.config.read_text()
        + "[capture]\nchunk_rows = 100\nchunk_rows_max = 100\ndump_share = 1.0\ndump_workers = 3\n"
    )
    made.run_here()
    assert made.differences() == []
    return made


def asked(project: Project) -> tuple[RequestBook, tuple[TableDump, ...]]:
    return wiring.dumps_asked_for(configuration.load(project.config))


def request_id(dump: TableDump) -> str:
    """The id in the name of a dump's request, whose token is another one each time."""
    return dump.request.partition(".")[0]


def states(project: Project) -> list[RequestState]:
    return [request.state for request in asked(project)[0].requests]


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


@contextmanager
def writing(project: Project) -> Iterator[OrderWriters]:
    writers = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=150)
    writers.start()
    try:
        yield writers
    finally:
        assert writers.stop().row_changes > 0


@pytest.mark.slow
def test_several_requests_at_once_repair_a_damaged_target_under_writers(
    project: Project, spark: SparkSession
) -> None:
    project.new.execute(*DAMAGE)
    assert len(project.differences()) > 2000
    with writing(project):
        for options in REQUESTS:
            project.command("dump", "start", *options)
        done = project.run_here()
    assert states(project) == [RequestState.DONE] * 3
    brought = [request.reason for request in asked(project)[0].requests]
    assert all("dropped" in text for text in brought), "each says what it brought"
    assert done.applied_changes > 0, "nothing was streamed meanwhile: the run proves little"
    assert 1200 < done.applied_chunk_rows < ROWS, "only what was asked for was read"
    project.run_here()
    assert project.differences() == []
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.slow
def test_killed_in_the_middle_a_request_goes_on_where_it_was(
    from_postgres: Project, spark: SparkSession
) -> None:
    project = from_postgres
    project.new.execute(*DAMAGE)
    with writing(project):
        project.command("dump", "start")
        project.command("dump", "start", *REQUESTS[0])
        process = project.process("run", "--plain", crash_at="capture.requested:12")
        output, _ = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == -signal.SIGKILL, output
        stored = {request_id(each): each for each in asked(project)[1]}
        # They take turns, but what the log has of them when it is cut may be chunks of one alone.
        assert all(stored[name].chunks < 12 and not stored[name].done for name in ("r1", "r2"))
        captured_before = sum(each.rows for each in stored.values())
        done = project.run_here()
    assert states(project) == [RequestState.DONE] * 2
    assert done.applied_chunk_rows < ROWS + 1300, "it didn't begin anew"
    assert captured_before > 0
    project.run_here()
    assert project.differences() == []
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.slow
def test_requests_are_steered_while_the_migration_runs(
    from_postgres: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    project = from_postgres
    project.new.execute(*DAMAGE)
    project.command("dump", "pace", "--chunk-rows", "20", "--delay", "0.3")
    process = project.process("run", "--plain")
    try:
        project.command("dump", "start", *REQUESTS[0])
        project.command("dump", "start", *REQUESTS[2])
        wait_for("both go on", lambda: sum(each.chunks > 0 for each in asked(project)[1]) == 2)
        project.command("dump", "pause", "r1")
        project.command("dump", "cancel", "r2")
        wait_for("r2 is gone", lambda: [request_id(each) for each in asked(project)[1]] == ["r1"])
        paused = asked(project)[1][0]
        assert not paused.done
        project.old.execute("UPDATE orders SET customer = 4242 WHERE id = 5")
        wait_for(
            "the log goes on",
            lambda: bool(project.new.query("SELECT 1 FROM purchase WHERE customer_id = 4242")),
        )
        assert asked(project)[1][0].chunks <= paused.chunks + 5, "a paused request reads on"
        capfd.readouterr()
        project.command("status")
        shown = capfd.readouterr().out
        assert "r1  paused  orders: keys from 1 to 1200" in shown
        assert "pace: 20 rows a chunk, 0.3 s between chunks" in shown
        project.command("dump", "pace", "--chunk-rows", "0", "--delay", "0")
        project.command("dump", "resume", "r1")
        project.command("dump", "restart", "r2")
        wait_for("all is done", lambda: states(project) == [RequestState.DONE] * 2)
        project.command("dump", "start", *REQUESTS[1])
        wait_for("listed keys", lambda: states(project)[-1] is RequestState.DONE)
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, output
    assert project.differences() == []


def test_a_predicate_that_fails_on_a_row_ends_its_request_and_not_the_run(
    project: Project, old: Database, spark: SparkSession
) -> None:
    fails = "1 / (id - 500) > 0" if old.kind == "postgresql" else "id * 9223372036854775807 > 0"
    with pytest.raises(RequestError):
        project.command("dump", "start", "--table", "orders", "--where", "id IN (SELECT nothing)")
    project.command("dump", "start", "--table", "orders", "--where", fails)
    project.command("dump", "start", "--table", "orders", "--from", "2990")
    project.old.execute("UPDATE orders SET customer = 4343 WHERE id = 6")
    project.run_here()
    (failed, other) = asked(project)[0].requests
    assert (failed.state, other.state) == (RequestState.FAILED, RequestState.DONE)
    assert failed.reason
    assert project.differences() == []
