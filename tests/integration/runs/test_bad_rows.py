"""Rows that the target refuses, set aside in whole runs: under writers, killed at any point, mended."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import RequestError, TargetError
from migrator.wiring.coordination import look
from migrator.wiring.target import bad_rows
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import ACTUAL, EXPECTED, Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import MariaDBServer, PostgresServer, fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

MOST = 100
"""The items of an order that the new schema allows."""
ROWS = 300
KILLS = (
    "target.begun",
    "target.merged",
    "target.moved",
    "target.refused",
    "target.committed",
    "apply.committed",
)
WAYS = ["postgresql to mariadb", "mariadb to postgresql"]
"""Two servers: what a target writes isn't in the source's log."""


@pytest.fixture(params=WAYS)
def project(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    postgres: PostgresServer,
    mariadb: MariaDBServer,
    spark: SparkSession,
) -> Iterator[Project]:
    """Orders, of which the target takes those with few items; what it refuses is set aside."""
    source, target = (postgres, mariadb) if request.param == WAYS[0] else (mariadb, postgres)
    with fresh_database(source, "old") as old, fresh_database(target, "new") as new:
        create(scenario_database(old), ROWS)
        made = run_project.make(tmp_path / "orders", old, new)
        new.execute(f"ALTER TABLE purchase ADD CONSTRAINT few CHECK (item_count <= {MOST})")
        made.config.write_text(made.config.read_text() + '\n[apply]\nbad_rows = "set_aside"\n')
        yield made


def aside(project: Project) -> dict[int, str]:
    """The keys that are set aside, and their rows."""
    return {int(one.key[0]): one.row for one in bad_rows(configuration.load(project.config))}


def holds(project: Project) -> None:
    """The target is the mapping of the source without exactly the keys set aside: by plain SQL on both sides."""
    expected = by_key(project.old.query(EXPECTED[project.old.kind]))
    bad = {int(row[0]) for row in project.old.query(f"SELECT id FROM orders WHERE items > {MOST}")}
    actual = by_key(project.new.query(ACTUAL[project.new.kind]))
    assert actual == {key: row for key, row in expected.items() if key not in bad}
    rows = aside(project)
    assert set(rows) == bad
    for key, row in rows.items():
        assert f"item_count={expected[key][2]}" in row, "the newest version is the one that is named"


def by_key(rows: Sequence[tuple[Any, ...]]) -> dict[int, tuple[object, ...]]:
    return {int(row[0]): tuple(map(_plain, row)) for row in rows}


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


@contextmanager
def writers(project: Project, seed: int) -> Iterator[None]:
    """Rows become bad and good again, come and go, while the migration runs."""
    stop, drawn, failed = threading.Event(), random.Random(seed), []

    def write() -> None:
        try:
            while not stop.wait(0.02):
                key = drawn.randint(1, 40)
                statement = drawn.choice(
                    [
                        f"UPDATE orders SET items = {MOST + key} WHERE id = {key}",
                        f"UPDATE orders SET items = {key} WHERE id = {key}",
                        f"UPDATE orders SET state = 'SENT' WHERE id = {key}",
                        f"DELETE FROM orders WHERE id = {key}",
                        f"INSERT INTO orders SELECT {key}, customer, {drawn.choice((3, 2 * MOST))}, state, comment,"
                        f" total, rebate, created, paid, source FROM orders o WHERE o.id = {ROWS}"
                        f" AND NOT EXISTS (SELECT 1 FROM orders p WHERE p.id = {key})",
                    ]
                )
                project.old.execute(statement)
        except Exception as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert not failed


def until_caught_up(project: Project, crash_at: str = "") -> int:
    """``migrator run --until caught-up`` in a process of its own; its exit code."""
    process = project.process("run", "--until", "caught-up", crash_at=crash_at)
    output, _ = process.communicate(timeout=240)
    assert process.returncode in (0, -signal.SIGKILL), output
    return process.returncode


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_point_exactly_the_bad_rows_are_aside(project: Project, seed: int) -> None:
    project.old.execute(f"UPDATE orders SET items = {MOST + 1} WHERE id IN (7, 11, 250)")
    drawn, killed = random.Random(seed), 0
    for point in ("target.refused", drawn.choice(KILLS)):
        with writers(project, seed):
            killed += until_caught_up(project, f"{point}:{drawn.randint(1, 2)}") != 0
    assert killed, "no point was reached"
    assert until_caught_up(project) == 0
    holds(project)
    assert aside(project), "a test without bad rows shows nothing"


@pytest.mark.slow
def test_bad_rows_from_the_first_dump_to_the_hand_over(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.old.execute(f"UPDATE orders SET items = {MOST + 5} WHERE id IN (5, 6)")
    project.run_here()
    holds(project)
    project.old.execute(
        f"UPDATE orders SET items = {MOST + 7} WHERE id IN (7, 8)", "UPDATE orders SET items = 1 WHERE id = 5"
    )
    project.run_here()
    holds(project)
    assert set(aside(project)) == {6, 7, 8}
    assert project.command("verify") == 1
    report = configuration.load(project.config).reports() / "verify.json"
    (table,) = json.loads(report.read_text())["tables"]
    assert (table["verdict"], table["counts"]["bad_rows"], table["counts"]["missing"]) == ("different", 3, 0)
    assert "purchase_id=7" in table["reason"]
    capsys.readouterr()
    project.command("rows", "set-aside")
    listed = capsys.readouterr().out
    assert "purchase purchase_id=6" in listed
    assert "item_count=105" in listed
    project.command("status")
    assert "set aside: purchase 3" in capsys.readouterr().out
    with pytest.raises(RequestError, match="3 row"):
        project.command("sequences", "--apply", "--no-source")
    assert project.command("sequences", "--apply", "--no-source", "--set-aside", "purchase") == 0
    project.command("rows", "drop", "purchase", "6", "--reason", "test data")
    with pytest.raises(RequestError, match="no row of purchase"):
        project.command("rows", "drop", "purchase", "99", "--reason", "none")
    with pytest.raises(RequestError, match="2 row"):
        project.command("sequences", "--apply", "--no-source")
    assert project.command("verify") == 1, "a dropped row is no equal one"
    project.new.execute("ALTER TABLE purchase DROP CONSTRAINT few")
    tried_again(project, "7")
    assert set(aside(project)) == {6, 8}
    tried_again(project)
    assert set(aside(project)) == {6}, "what was dropped is tried by its key alone"
    tried_again(project, "6")
    assert aside(project) == {}
    assert project.differences() == []
    assert project.command("sequences", "--apply", "--no-source") == 0
    assert project.command("verify") == 0
    project.command("history")
    assert "rows drop" in (acts := capsys.readouterr().out)
    assert "because test data" in acts


def tried_again(project: Project, key: str = "") -> None:
    """``migrator rows retry`` beside a run."""
    running = project.process("run")
    try:
        leads(project)
        words = ["purchase", key] if key else []
        assert project.command("rows", "retry", *words, "--wait", "120") == 0
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)


def leads(project: Project) -> None:
    """Returns once a run leads."""
    settings = configuration.load(project.config)
    await_true(lambda: bool(look(settings).leader), "somebody leads", 120)


@pytest.mark.parametrize("project", [WAYS[1]], indirect=True)
def test_more_than_may_be_stops_and_the_remedy_goes_on(project: Project) -> None:
    project.config.write_text(project.config.read_text() + "bad_rows_per_table = 2\n")
    project.old.execute(f"UPDATE orders SET items = {MOST + 5} WHERE id <= 3")
    with pytest.raises(TargetError, match="bad_rows_per_table allows: 2") as stopped:
        project.run_here()
    assert "[apply] bad_rows_per_table" in stopped.value.remedy
    assert project.new.query("SELECT count(*) FROM purchase") == [(0,)]
    project.config.write_text(project.config.read_text().replace("per_table = 2", "per_table = 3"))
    project.run_here()
    holds(project)
