"""`migrator run --verify`: a rogue write is found and named while the stream goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database
from verify.tables.coverage import TableCoverage, read_coverage

pytestmark = [pytest.mark.integration, pytest.mark.spark]

DEADLINE_S = 240.0


def covered(project: Project) -> TableCoverage:
    found = read_coverage(configuration.load(project.config).reports())
    return found.of("purchase") if found is not None else TableCoverage("purchase")


@pytest.mark.slow
def test_a_rogue_write_is_named_and_the_run_goes_on(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    create(scenario_database(old_pg), 200)
    project = run_project.make(tmp_path / "project", old_pg, new_pg)
    process = project.process("run", "--plain", "--verify", "--verify-rate", "1000000")
    try:
        await_true(lambda: covered(project).verdict == "equal", "verified once", DEADLINE_S)
        project.command("status")
        shown = capfd.readouterr().out
        assert "verified   purchase: equal, 100.0% of 200 keys, 10 of 10 columns" in shown, (
            "the control: no alarm"
        )
        project.new.execute("UPDATE purchase SET note = 'rogue' WHERE purchase_id = 7")
        project.old.execute("UPDATE orders SET customer = 4242 WHERE id = 8")
        await_true(lambda: covered(project).verdict == "different", "the rogue write is found", DEADLINE_S)
        stream = "SELECT count(*) FROM purchase WHERE purchase_id = 8 AND customer_id = 4242"
        await_true(lambda: project.new.query(stream)[0][0] == 1, "the stream goes on")
        found = covered(project)
        assert found.differing == 1
        assert '"7"' in (Path(found.report) / "verify-keys.jsonl").read_text()

        def warned() -> bool:
            project.command("status")
            shown = capfd.readouterr().out
            return "1 differ, see" in shown and "warning    purchase: 1 keys of the target differ" in shown

        await_true(warned, "status warns", DEADLINE_S)
        assert process.poll() is None
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "warning: purchase: 1 keys of the target differ" in output
