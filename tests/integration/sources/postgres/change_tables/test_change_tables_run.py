"""A whole migration from change tables: under writers, killed on the way, with the least grants."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration

READER = "reads_changes"


@pytest.fixture
def project(
    postgres: PostgresServer, tmp_path: Path, old_pg: Database, new_pg: Database
) -> Iterator[Project]:
    """The source's role may log in and read, nothing else; what it needs besides is in the printed script."""
    postgres.admin.execute(f"CREATE ROLE {READER} LOGIN PASSWORD 'reads'")
    create(scenario_database(old_pg), 3000)
    made = run_project.make(tmp_path / "project", old_pg, new_pg)
    text = made.config.read_text()
    settings = f'user = "{READER}"\npassword_env = "READS"\nlog = "change_tables"\nforget_changes = true'
    text = text.replace(f'user = "{old_pg.user}"', settings, 1)
    made.config.write_text(text + "[capture]\nchunk_rows = 200\nchunk_rows_max = 200\ndump_share = 1.0\n")
    old_pg.execute(f"GRANT SELECT ON orders TO {READER}")
    try:
        yield made
    finally:
        old_pg.execute(f"DROP OWNED BY {READER}")
        postgres.admin.execute(f"DROP ROLE {READER}")


@pytest.mark.slow
@pytest.mark.spark
def test_a_migration_from_change_tables_ends_equal_though_killed(
    project: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READS", "reads")
    assert project.command("check") == 2
    assert "there are no change tables yet" in capfd.readouterr().out
    assert project.command("changetables") == 0
    with project.old.connect() as owner:
        owner.execute(capfd.readouterr().out)
    writers = OrderWriters(scenario_database(project.old), 3000, rate_per_s=200)
    writers.start()
    process = project.process("run", "--plain", crash_at="capture.appended:2")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, f"it was never killed:\n{output}"
    assert writers.stop().row_changes > 0
    snapshot = project.run_here()
    assert snapshot.applied_changes > 0
    assert project.differences() == []
    assert project.command("verify", "--wait", "20") == 0
    left = project.old.query('SELECT count(*) FROM migrator_cdc."public_orders_CT"')[0][0]
    taken = project.old.query("SELECT last_value FROM migrator_cdc.seqval")[0][0]
    assert left < taken / 2, "what was delivered is deleted"
    slots = project.old.query("SELECT count(*) FROM pg_replication_slots WHERE database = current_database()")
    assert slots == [(0,)], "the log isn't read"
