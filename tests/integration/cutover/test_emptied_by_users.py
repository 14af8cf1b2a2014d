"""Tables that the application empties once it writes to the new side: nobody takes that for a loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import TargetError
from migrator.wiring import parts as wiring
from tests.integration.cutover.led import leading, ready
from tests.integration.cutover.two_way import TwoWay, made
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]
EMPTIED = "DELETE FROM purchase"


def handed_over(engine: str, request: pytest.FixtureRequest, folder: Path) -> TwoWay:
    """The new side is open; users have deleted all rows of a table there, and nobody leads any more."""
    project = made(engine, request, folder)
    project.run_here()
    assert project.command("verify") == 0
    assert project.command("cutover", "plan", "--accept") == 0
    with leading(project):
        ready(project)
        assert project.command("cutover", "start", "--wait", "60") == 0
    project.new.execute(EMPTIED)
    return project


def switched(project: TwoWay, which: str) -> None:
    """A switch begins once both ways keep up: they have only just begun."""
    wanted = ("cutover", which, "--wait", "60")
    await_true(lambda: project.command(*wanted) == 0, f"{which} is done", 240)


@pytest.mark.parametrize("engine", ["pg-pg", "pg-mysql", "maria-pg"])
def test_a_table_that_users_have_emptied_after_a_switch_stops_neither_way(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = handed_over(engine, request, tmp_path / "project")
    for _ in range(2):  # before the change has come back, and after
        with leading(project):
            await_true(
                lambda: project.old.query("SELECT count(*) FROM orders") == [(0,)], "it is carried", 120
            )
    with leading(project):
        switched(project, "back")
        project.old.execute("INSERT INTO orders VALUES (5000, 1, 100, 1, 'shop')")
        await_true(lambda: project.new.query("SELECT count(*) FROM purchase") == [(1,)], "it came", 120)
        project.old.execute("DELETE FROM orders")
    with leading(project):
        await_true(lambda: project.new.query("SELECT count(*) FROM purchase") == [(0,)], "it is gone", 120)
        switched(project, "start")
        project.new.execute("INSERT INTO purchase VALUES (6000, 1, 1.00, true)")
        await_true(lambda: project.old.query("SELECT count(*) FROM orders") == [(1,)], "it is carried", 120)


def test_without_the_record_it_is_taken_for_a_loss(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    project = handed_over("pg-pg", request, tmp_path / "project")
    monkeypatch.setattr(wiring, "was_handed_over", lambda settings: False)
    with pytest.raises(TargetError, match="though the last batch that was applied to it brought rows"):
        project.run_here()
