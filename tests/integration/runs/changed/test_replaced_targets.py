"""A target table that is replaced by hand, while we run or not, is noticed; the remedy brings all rows.

``test_late_targets.py`` has those that are made again while nobody runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.targets.shared.identities import Identities
from migrator.config import project as configuration
from migrator.errors import TargetError
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.runs.changed.test_late_targets import EXPECTED, LATE, MADE, mapped
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

SMALL = (
    "\n[capture]\nchunk_rows = 20\nchunk_rows_max = 20\nsegment_rows = 20\ndump_share = 1.0\n"
    "[apply]\nbatch_rows = 40\n"
)
WHILE_WE_RUN, BY_THE_START = "was replaced while we run: late", "isn't the one that its rows were applied to"
OLDER = (
    MADE["late"].replace("TABLE late", "TABLE newer"),
    "INSERT INTO newer SELECT * FROM late WHERE id % 2 = 0",
)


@pytest.fixture(params=["new_pg", "new_maria", "new_mysql"])
def project(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database, spark: SparkSession) -> Project:
    create(scenario_database(old_pg), 200)
    made = run_project.make(tmp_path / "project", old_pg, request.getfixturevalue(request.param))
    made.config.write_text(made.config.read_text() + SMALL)
    made.new.execute(MADE["late"])
    mapped(made, LATE)
    return made


def of_the_table(project: Project) -> object:
    """When it was made, in whole seconds, or its number."""
    if project.new.kind == "postgresql":
        return project.new.query("SELECT 'late'::regclass::oid")
    return project.new.query(
        "SELECT create_time FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'late'"
    )


def by_hand(project: Project, *statements: str) -> None:
    """Statements after which the table has another identity. The binlog's engines have whole seconds."""
    if project.new.kind != "postgresql":
        (made,) = project.new.query(
            "SELECT MAX(create_time) FROM information_schema.tables WHERE table_schema = DATABASE()"
        )
        await_true(lambda: project.new.query("SELECT NOW() > %s", made) == [(1,)], "another second")
    before = of_the_table(project)
    project.new.execute(*statements)
    assert of_the_table(project) != before


def swapped(project: Project) -> None:
    """Gives the name to another table, which has some of the rows."""
    by_hand(
        project,
        *OLDER,
        *(
            ["ALTER TABLE late RENAME TO older", "ALTER TABLE newer RENAME TO late"]
            if project.new.kind == "postgresql"
            else ["RENAME TABLE late TO older, newer TO late"]
        ),
    )


def made_again(project: Project) -> None:
    by_hand(project, "DROP TABLE late", MADE["late"])


def altered(project: Project) -> None:
    """The control: it is the same table."""
    project.new.execute("ALTER TABLE late ADD more int", "CREATE INDEX by_customer ON late (customer)")


def meddled(project: Project, what: Callable[[Project], None]) -> None:
    """A run in which somebody does so after two batches. Raises what ends it."""
    batches = 0

    def step(name: str) -> None:
        nonlocal batches
        batches += name == "apply.committed"
        if name == "apply.committed" and batches == 2:
            what(project)

    parts = replace(wiring.parts(configuration.load(project.config)), step=step)
    Migration(parts).run(Stopping(), caught_up(parts.catalog.position))
    assert batches > 2, "nothing was applied behind it"


def right(project: Project) -> bool:
    rows = project.old.query(EXPECTED["late"])
    assert rows
    return set(map(tuple, project.new.query("SELECT id, customer FROM late"))) == set(map(tuple, rows))


def refused_and_followed(project: Project) -> None:
    """Each start says so until its remedy is followed."""
    for _ in range(2):
        with pytest.raises(TargetError, match=BY_THE_START) as caught:
            project.run_here()
        assert caught.value.where == "target table late"
    remedy = caught.value.remedy
    assert remedy.startswith(
        "ask for the rows: migrator dump start --table orders; then empty the table (late);"
    )
    assert project.command("dump", "start", "--table", "orders") == 0
    project.new.execute("DELETE FROM late")
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0")
    project.run_here()
    assert right(project)
    project.run_here()
    assert project.differences() == []


def test_one_that_is_made_again_while_we_run_gets_no_row_until_it_gets_all(project: Project) -> None:
    with pytest.raises(TargetError, match=WHILE_WE_RUN) as caught:
        meddled(project, made_again)
    assert caught.value.remedy.startswith("start again: the next start says how it gets all rows")
    assert project.new.query("SELECT count(*) FROM late") == [(0,)]
    refused_and_followed(project)


def test_one_that_is_swapped_while_we_run_is_refused_then_or_by_the_next_start(project: Project) -> None:
    """MySQL and MariaDB can't tell it from an ALTER while its rows are there; the other table is found later."""
    if project.new.kind == "postgresql":
        with pytest.raises(TargetError, match=WHILE_WE_RUN):
            meddled(project, swapped)
    else:
        meddled(project, swapped)
    refused_and_followed(project)


def test_one_that_is_swapped_while_we_are_stopped_is_refused_by_the_next_start(project: Project) -> None:
    project.run_here()
    assert right(project)
    swapped(project)
    refused_and_followed(project)


@pytest.mark.parametrize("project", ["new_pg"], indirect=True)
def test_one_that_gets_its_name_back_goes_on(project: Project) -> None:
    """The other half of what the refusal while we run says."""
    with pytest.raises(TargetError, match="give it its name back first"):
        meddled(project, swapped)
    project.new.execute("ALTER TABLE late RENAME TO newer", "ALTER TABLE older RENAME TO late")
    project.run_here()
    assert right(project)


def test_one_that_is_altered_goes_on_and_where_nobody_can_tell_it_is_said(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    meddled(project, altered)
    assert right(project)
    if project.new.kind == "postgresql":
        project.new.execute("ALTER TABLE late ADD again int")
    else:
        by_hand(project, "ALTER TABLE late ADD again int")
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0")
    capsys.readouterr()
    assert project.command("check", "--value-seconds", "0") == 0
    told = "the table of late was altered since rows of it were applied, or is another one" in " ".join(
        capsys.readouterr().out.split()
    )
    assert told is (project.new.kind != "postgresql")
    project.run_here()
    assert right(project)


@pytest.mark.parametrize("project", ["new_maria"], indirect=True)
def test_without_the_look_rows_go_into_another_table(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    monkeypatch.setattr(Identities, "compared", lambda self, found: None)
    meddled(project, made_again)
    assert project.new.query("SELECT count(*) FROM late") != [(0,)]
    assert not right(project)
