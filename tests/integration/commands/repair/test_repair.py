"""Repair on real servers: wrong, missing and extra rows become right while writers hit the same keys."""

from __future__ import annotations

import json
import re
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import RequestError
from migrator.model.requests.request import WHOLE, Doubt, RequestState, Scope
from migrator.model.table import TableId
from migrator.run.caught_up import caught_up
from migrator.run.commands.repair import Wanted, Way, repair_steps
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.parts import Parts
from migrator.wiring import coordination
from migrator.wiring import parts as wiring
from migrator.wiring import repair as wiring_repair
from migrator.wiring.source import source_parts
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database
from verify.tables.coverage import read_coverage

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 400
EXTRA = 900_001
DAMAGE = (
    "UPDATE purchase SET note = 'rogue' WHERE purchase_id IN (11, 12)",
    "DELETE FROM purchase WHERE purchase_id IN (21, 22)",
    "INSERT INTO purchase SELECT 900001, customer_id, item_count, status, note, amount_cents, discount, placed_at,"
    " is_paid, channel FROM purchase WHERE purchase_id = 1",
)
KEYS = (11, 12, 21, 22)
HIT = (11, 22)
"""Keys that a writer changes all the time; the stream alone might mend these."""
STREAMING = "SELECT count(*) FROM pg_replication_slots WHERE active AND database = current_database()"


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    return dumped(tmp_path, old_pg, new_pg)


def dumped(
    tmp_path: Path, old: Database, new: Database, change: Callable[[Project], None] = lambda made: None
) -> Project:
    """A project that is in step, then damaged; ``change`` it before anything runs."""
    create(scenario_database(old), ROWS)
    made = run_project.make(tmp_path / "project", old, new)
    change(made)
    made.run_here()
    assert made.differences() == []
    made.new.execute(*DAMAGE)
    assert len(made.differences()) == 7
    return made


@contextmanager
def running(project: Project) -> Iterator[subprocess.Popen[str]]:
    process = project.process("run", "--plain")
    try:
        settings = configuration.load(project.config)
        await_true(lambda: leads(settings), "the run leads")
        if project.old.kind == "postgresql":
            await_true(lambda: project.old.query(STREAMING)[0][0] == 1, "the log is read", 240)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output


def leads(settings: configuration.Settings) -> bool:
    """Whether a run of this project answers requests."""
    try:
        return bool(wiring_repair.running_leader(settings))
    except RequestError:
        return False


@contextmanager
def hitting(project: Project) -> Iterator[None]:
    """A writer that does nothing but change the rows under repair, until they are repaired."""
    stop = threading.Event()
    store = coordination.requests(configuration.load(project.config))
    before = len(store.read().requests)

    def closed() -> bool:
        asked = store.read().requests
        return len(asked) > before and not any(request.is_open() for request in asked)

    def write() -> None:
        connection, number = project.old.connect(), 0
        while not stop.wait(0.005) and not closed():
            number += 1
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE orders SET customer = {number} WHERE id = {HIT[number % len(HIT)]}")
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def verdict_of(project: Project) -> str:
    """What `status`, the observer and a cut-over take for the last verdict."""
    covered = read_coverage(configuration.load(project.config).reports())
    return "" if covered is None else covered.of("purchase").verdict


@pytest.mark.slow
def test_a_dry_run_says_what_it_would_do_and_writes_nothing(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    before = project.differences()
    assert project.command("repair") == 1
    shown = capfd.readouterr().out
    assert "purchase: 2 different, 1 extra, 2 missing" in shown
    assert "extra  900001: is removed" in shown
    assert "5 rows by listed source keys, about 5 rows of public.orders" in shown
    assert "nothing was written" in shown
    assert project.differences() == before
    assert wiring.dumps_asked_for(configuration.load(project.config))[0].requests == ()
    assert verdict_of(project) == "different"
    keys = configuration.load(project.config).reports() / "verify-keys.jsonl"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert project.command("repair", "--table", "purchase", "--range", "12", "21") == 1
    shown = capfd.readouterr().out
    assert "purchase: 1 different, 1 missing" in shown
    plan = json.loads((keys.parent / "repair-plan.json").read_text())
    assert (plan["dry_run"], plan["before"]) == (True, {"purchase": {"different": 1, "missing": 1}})
    assert not list(keys.parent.glob("repair.*"))
    with pytest.raises(RequestError, match="nobody runs the migration"):
        project.command("repair", "--apply")
    assert project.differences() == before


@pytest.mark.slow
def test_a_range_and_then_everything_is_repaired_while_writers_hit_the_same_keys(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    assert project.command("verify") == 1
    report = configuration.load(project.config).reports() / "verify.json"
    kept = report.parent / "first"
    kept.mkdir()
    for path in report.parent.glob("verify*"):
        (kept / path.name).write_bytes(path.read_bytes())
    listed = ("repair", "--from", str(kept / "verify.json"), "--apply")
    with running(project):
        with hitting(project):
            assert project.command(*listed, "--table", "purchase", "--range", "12", "22") == 0
        part = json.loads((report.parent / "repair.json").read_text())
        assert (part["before"], part["after"]) == ({"purchase": {"different": 1, "missing": 2}}, {})
        assert {key for key, *_ in project.differences()} & {12, 21, 22, EXTRA} == {EXTRA}, (
            "what wasn't asked for stays"
        )
        capfd.readouterr()
        with hitting(project):
            assert project.command(*listed) == 0
    shown, said = capfd.readouterr()
    assert "waiting for the run: 0 of 1 dump requests done" in said
    standing = r"\d+ of 1 tables read, \d of 1 tables settled, [\d,]+ keys settled, \d+ keys set aside"
    assert re.search(rf"Z round 1: reading purchase; {standing}; ", said), said
    assert "purchase: before 2 different, 1 extra, 2 missing; after nothing differs" in shown
    document = json.loads((report.parent / "repair.json").read_text())
    assert (document["verdict"], document["after"], document["others"]) == ("repaired", {}, {})
    assert [state for _, state, _ in document["requests"]] == [RequestState.DONE.value]
    assert document["verdicts"] == [["purchase", "different", "equal"]]
    assert verdict_of(project) == "equal", "whoever watches the run needn't verify once more"
    assert {sample["after"] for sample in document["samples"]} == {"repaired"}
    assert "5 rows in purchase" in (report.parent / "repair.html").read_text()
    project.run_here()
    assert project.differences() == []


def placed(project: Project, at: str, act: Callable[[], None]) -> None:
    """Runs a repair of all damaged keys in this process; ``act`` once, at a named point after the mark."""
    settings = configuration.load(project.config)
    parts = wiring.parts(settings)
    keys = tuple((str(key),) for key in (*KEYS, EXTRA))
    steps = repair_steps(parts, [Wanted("purchase", ("purchase_id",), keys)])
    assert [step.way for step in steps] == [Way.LISTED]
    wiring_repair.begin_repair(settings, steps)
    left = [act]

    def step(name: str) -> None:
        if name == at and left:
            left.pop()()

    run(wiring.parts(settings), step)


def run(parts: Parts, step: Callable[[str], None]) -> None:
    _, ports = source_parts(configuration.load(parts.slots.parent.parent / "migration.toml"), step)
    made = replace(parts, step=step, source=ports)
    Migration(made).run(Stopping(), caught_up(made.catalog.position))


def inserted(project: Project) -> Callable[[], None]:
    """The source gets the row that the target had too many, and a missing one goes for good, after the SELECT."""
    return lambda: project.old.execute(
        f"INSERT INTO orders SELECT {EXTRA}, customer, items, state, comment, total, rebate, created, paid, source"
        " FROM orders WHERE id = 5",
        "DELETE FROM orders WHERE id = 21",
        "UPDATE orders SET customer = 777 WHERE id = 11",
    )


def test_a_row_that_appears_between_read_and_removal_stays(project: Project, spark: SparkSession) -> None:
    placed(project, "chunk.selected", inserted(project))
    project.run_here()
    assert project.differences() == []
    assert project.new.query(f"SELECT count(*) FROM purchase WHERE purchase_id = {EXTRA}")[0][0] == 1


@pytest.mark.slow
def test_a_naive_repair_beside_the_stream_loses_a_row_and_goes_back_in_time(
    project: Project, spark: SparkSession
) -> None:
    """The control. Statements made from a report: (1) verified; (2) row 900001 is removed by others, the
    source gets it, row 11 changes, both are streamed; (3) the statements of (1) arrive."""
    assert project.command("verify") == 1
    value = project.old.query("SELECT customer FROM orders WHERE id = 11")[0][0]
    naive = (
        f"DELETE FROM purchase WHERE purchase_id = {EXTRA}",
        f"UPDATE purchase SET customer_id = {value}, note = NULL WHERE purchase_id = 11",
    )
    project.new.execute(naive[0])
    inserted(project)()
    project.run_here()
    project.new.execute(*naive)
    lost = {row[0] for row in project.differences()}
    assert {EXTRA, 11} <= lost


@pytest.mark.slow
def test_statements_for_hands_repair_a_target_at_rest_and_spare_what_changed_since(
    project: Project, spark: SparkSession, tmp_path: Path
) -> None:
    project.new.execute("UPDATE purchase SET note = 'quo''ted \\ ü' WHERE purchase_id = 30")
    file = tmp_path / "fix.sql"
    assert project.command("repair", "--sql", str(file)) == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    assert "-- extra: purchase purchase_id=900001" in text
    project.new.execute("UPDATE purchase SET note = 'changed since' WHERE purchase_id = 12")
    project.new.execute(text)
    assert {row[0] for row in project.differences()} == {12}
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id = 12")
    project.run_here()
    assert project.differences() == []


@pytest.mark.slow
def test_statements_for_mysql(
    tmp_path: Path, old_pg: Database, new_mysql: Database, spark: SparkSession
) -> None:
    project = dumped(tmp_path, old_pg, new_mysql)
    assert project.command("repair", "--table", "purchase", "--range", "12", "21") == 1
    plan = configuration.load(project.config).reports() / "repair-plan.json"
    assert json.loads(plan.read_text())["before"] == {"purchase": {"different": 1, "missing": 1}}
    file = tmp_path / "fix.sql"
    assert project.command("repair", "--sql", str(file)) == 1
    statements = [line for line in file.read_text().splitlines() if not line.startswith("--")]
    project.new.execute(*[line.rstrip(";") for line in statements])
    assert project.differences() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "scope"),
    [("purchase", Scope(keys=(("5",),))), ("secrets", WHOLE), ("purchase", Scope(low=("1",)))],
)
def test_a_forged_repair_takes_no_row(
    project: Project, spark: SparkSession, target: str, scope: Scope
) -> None:
    """Whoever reaches the book asks for row 7 to vanish unless what is dumped makes it, and dumps others."""
    store = coordination.requests(configuration.load(project.config))
    before = project.differences()
    orders = TableId("public", "orders")
    store.update(lambda book: book.start((orders,), scope, (Doubt(target, (("7",),)),)))
    project.run_here()
    (request,) = store.read().requests
    assert request.state is RequestState.FAILED
    assert "without dumping all" in request.reason
    assert project.differences() == before
