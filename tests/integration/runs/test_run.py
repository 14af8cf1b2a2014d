"""Whole runs on real servers: under concurrent writers, killed at every named point, started again, and
verified."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.config import project as configuration
from migrator.errors import EventLogError, FencedError
from migrator.ports.eventlog import Batch
from migrator.wiring.observed import status as observed
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration

CRASH_POINTS = ("capture.segment", "segment.synced:2", "apply.mapped:2", "apply.committed")
"""One in each stretch between two durable states; the simulation dies at all of them, thousands of times."""
MORE_CRASH_POINTS = (
    "capture.chunk",
    "segment.data",
    "segment.created",
    "capture.appended:2",
    "apply.mapped",
    "apply.released",
)


@pytest.fixture
def from_postgres(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    create(scenario_database(old_pg), 3000)
    return run_project.make(tmp_path / "project", old_pg, new_pg)


@pytest.fixture
def from_mariadb(tmp_path: Path, old_maria: Database, new_pg: Database) -> Project:
    create(scenario_database(old_maria), 3000)
    return run_project.make(tmp_path / "project", old_maria, new_pg)


@pytest.fixture
def from_mysql(tmp_path: Path, old_mysql: Database, new_pg: Database) -> Project:
    create(scenario_database(old_mysql), 3000)
    return run_project.make(tmp_path / "project", old_mysql, new_pg)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("engine", "placement"),
    [
        ("postgres", "witness"),
        ("mariadb", "watermark"),
        ("mysql", "witness"),
        pytest.param("postgres", "message", marks=pytest.mark.slow),
        pytest.param("postgres", "watermark", marks=pytest.mark.slow),
        pytest.param("mariadb", "witness", marks=pytest.mark.slow),
        pytest.param("mysql", "watermark", marks=pytest.mark.slow),
    ],
)
def test_a_run_under_writers_ends_equal_and_goes_on_from_there(
    engine: str, placement: str, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    project: Project = request.getfixturevalue(f"from_{engine}")
    small = "[capture]\nchunk_rows = 200\nchunk_rows_max = 200\ndump_share = 1.0"
    project.config.write_text(
        project.config.read_text().replace("[target]", f'placement = "{placement}"\n\n[target]') + small
    )
    writers = OrderWriters(scenario_database(project.old), 3000, rate_per_s=400)
    writers.start()
    first = project.run_here()
    assert writers.stop().row_changes > 0
    assert first.applied_changes > 0, "nothing was streamed while dumping: the run proves little"
    (dump,) = first.dumps
    assert dump.done
    assert dump.chunks >= 15
    second = project.run_here()
    assert second.applied_chunk_rows == 0, "a finished dump is not repeated"
    assert project.differences() == []
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "points", [CRASH_POINTS, pytest.param(MORE_CRASH_POINTS, marks=pytest.mark.slow)], ids=["few", "more"]
)
def test_killed_at_every_named_point_it_goes_on_and_ends_equal(
    points: tuple[str, ...], from_postgres: Project, spark: SparkSession
) -> None:
    """One migration, killed at one point after the other, each time started again by the same command."""
    writers = OrderWriters(scenario_database(from_postgres.old), 3000, rate_per_s=200)
    writers.start()
    for point in points:
        process = from_postgres.process("run", "--plain", crash_at=point)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL, f"{point} was never reached:\n{output}"
    writers.stop()
    from_postgres.run_here()
    assert from_postgres.differences() == []
    assert from_postgres.command("verify", "--wait", "20") == 0


@pytest.mark.slow
@pytest.mark.spark
def test_a_clean_stop_says_what_was_done_and_status_tells_from_outside(
    from_postgres: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    process = from_postgres.process("run", "--until", "caught-up")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "dumped rows      3,000" in output
    assert from_postgres.command("status") == 5, "nobody leads"
    shown = capfd.readouterr().out
    assert "dump       orders: done (3,000 rows, 0 dropped); no change seen yet" in shown
    assert "leader     none" in shown
    assert "warning" not in shown
    settings = configuration.load(from_postgres.config)
    gone = observed.status(replace(settings, source=replace(settings.source, port=1)))
    assert "nobody knows how long the source keeps its log" in gone.warnings[0], "nobody leads: it is asked"


@pytest.mark.spark
def test_each_planted_difference_is_found_and_named(
    from_postgres: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    big = 2**53
    from_postgres.old.execute(f"UPDATE orders SET customer = {big} WHERE id = 7")
    from_postgres.run_here()
    assert from_postgres.command("verify") == 0
    from_postgres.new.execute(
        f"UPDATE purchase SET customer_id = {big + 1} WHERE purchase_id = 7",
        "DELETE FROM purchase WHERE purchase_id = 8",
        "INSERT INTO purchase SELECT 999999999, customer_id, item_count, status, note, amount_cents, discount,"
        " placed_at, is_paid, channel FROM purchase WHERE purchase_id = 9",
    )
    capfd.readouterr()
    assert from_postgres.command("verify") == 1
    shown = capfd.readouterr().out
    assert "DIFFERENT" in shown
    for named in (str(big), str(big + 1), "999999999", "customer_id"):
        assert named in shown
    report = from_postgres.config.parent / ".migrator" / "reports" / "verify.html"
    assert str(big + 1) in report.read_text()


@pytest.mark.spark
@pytest.mark.parametrize("replaced", [True, False])
def test_whose_segments_a_successor_released_says_that_it_was_replaced(
    replaced: bool, from_postgres: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that slept on a machine of its own: nobody had its lease to take. Found by the scenario ``zombie``."""
    log = Layout.of(configuration.load(from_postgres.config).event_log())
    read = FileBatchReader.read

    def after_a_sleep(reader: FileBatchReader, after: int, max_rows: int, timeout_s: float) -> Batch | None:
        if after:
            applied = "SELECT segment FROM migrator.ledger"
            await_true(lambda: from_postgres.new.query(applied) == [(after,)], "nothing is in its hands")
            if replaced:
                from_postgres.new.execute("UPDATE migrator.ledger SET epoch = epoch + 1")
            durable.raise_number(log.released, after + 1)
        return read(reader, after, max_rows, timeout_s)

    monkeypatch.setattr(FileBatchReader, "read", after_a_sleep)
    what = "another process leads this migration: epoch 2" if replaced else "no longer in the event log"
    with pytest.raises(FencedError if replaced else EventLogError, match=what):
        from_postgres.run_here()
