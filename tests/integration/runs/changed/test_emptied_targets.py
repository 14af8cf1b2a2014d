"""A target table that is emptied by hand, while we run or not, is noticed; the remedy brings all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from migrator.adapters.targets.shared.identities import Identities
from migrator.config import project as configuration
from migrator.errors import TargetError
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.lead import carried
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from tests.integration.run_project import Project
from tests.integration.runs.changed.test_replaced_targets import (
    WHILE_WE_RUN,
    by_hand,
    meddled,
    project,
    right,
)

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

__all__ = ["project"]
EMPTIED = "a target is empty, though the last batch that was applied to it brought rows"
TRUNCATE, DELETE = "TRUNCATE TABLE late", "DELETE FROM late"


def truncated(project: Project) -> None:
    project.new.execute(TRUNCATE)


def deleted(project: Project) -> None:
    project.new.execute(DELETE)


def refused_and_followed(project: Project) -> None:
    """Each start says so until its remedy is followed."""
    for _ in range(2):
        with pytest.raises(TargetError, match=EMPTIED) as caught:
            project.run_here()
        assert caught.value.where == "target table late"
    assert caught.value.remedy.startswith("ask for the rows: migrator dump start --table orders; then ")
    assert project.command("dump", "start", "--table", "orders") == 0
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0")
    project.run_here()
    assert right(project)
    project.run_here()
    assert project.differences() == []


def test_one_that_is_emptied_while_we_are_stopped_is_refused_by_the_next_start(project: Project) -> None:
    project.run_here()
    assert right(project)
    project.new.execute(DELETE)
    refused_and_followed(project)
    truncated(project)
    refused_and_followed(project)


def test_one_that_the_source_has_emptied_goes_on(project: Project) -> None:
    """The control: nobody else did it."""
    project.run_here()
    project.old.execute("DELETE FROM orders")
    project.run_here()
    assert project.new.query("SELECT count(*) FROM late") == [(0,)]
    project.run_here()


def behind_the_start(project: Project, what: Callable[[], None]) -> None:
    """A run in which somebody does so once the start has looked, before a batch was written. Raises what ends it."""
    done: list[str] = []

    def step(name: str) -> None:
        if name == "apply.read" and not done:
            done.append(name)
            what()

    parts = replace(wiring.parts(configuration.load(project.config)), step=step)
    Migration(parts).run(Stopping(), caught_up(parts.catalog.position))
    assert done, "nothing was to be applied"


@pytest.mark.parametrize("statement", [DELETE, TRUNCATE])
def test_one_that_is_emptied_before_a_runs_first_batch_gets_no_row_until_it_gets_all(
    project: Project, statement: str
) -> None:
    """A run may last for days before it writes into a table. Neither has the run seen its file or time of before."""
    project.run_here()
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0")
    with pytest.raises(TargetError, match=WHILE_WE_RUN):
        behind_the_start(project, lambda: project.new.execute(statement))
    assert project.new.query("SELECT count(*) FROM late") == [(0,)]
    refused_and_followed(project)


def tidied(project: Project) -> None:
    """What an administrator does to a table that has become empty: it is written anew."""
    if project.new.kind != "postgresql":
        by_hand(project, "OPTIMIZE TABLE late", "ALTER TABLE late ENGINE = InnoDB", "ANALYZE TABLE late")
        return
    with project.new.connect(autocommit=True) as connection:
        for statement in (
            "VACUUM FULL late",
            "CLUSTER late USING late_pkey",
            "REINDEX TABLE late",
            "ANALYZE late",
        ):
            connection.execute(statement)


def test_one_that_is_empty_rightly_may_be_written_anew_stopped_or_not(project: Project) -> None:
    """The control: of its rows none is gone by another's hand. The last ones go alone, then all at once."""
    project.run_here()
    project.old.execute("CREATE TABLE spare AS SELECT * FROM orders", "DELETE FROM orders WHERE id > 1")
    project.run_here()
    project.old.execute("DELETE FROM orders")
    project.run_here()
    tidied(project)
    project.old.execute("INSERT INTO orders SELECT * FROM spare")
    project.run_here()
    assert right(project)
    project.old.execute("DELETE FROM orders")
    project.run_here()
    project.old.execute("INSERT INTO orders SELECT * FROM spare")
    behind_the_start(project, lambda: tidied(project))
    assert right(project)


def test_one_that_loses_some_rows_and_is_emptied_then_is_refused(project: Project) -> None:
    project.run_here()
    project.old.execute("DELETE FROM orders WHERE id % 2 = 0")
    project.run_here()
    project.new.execute(DELETE)
    refused_and_followed(project)


def test_without_the_look_only_changed_rows_come_back(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    project.run_here()
    project.new.execute(DELETE)
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 3 = 0")
    monkeypatch.setattr(carried, "emptied", lambda *_: set[str]())
    monkeypatch.setattr(Identities, "begun", lambda *_: None)
    project.run_here()
    assert project.new.query("SELECT count(*) FROM late") != [(0,)]
    assert not right(project)


@pytest.mark.parametrize("emptied", [truncated, deleted])
def test_one_that_is_emptied_while_we_run_gets_no_row_until_it_gets_all(
    project: Project, emptied: Callable[[Project], None]
) -> None:
    with pytest.raises(TargetError, match=WHILE_WE_RUN) as caught:
        meddled(project, emptied)
    assert "emptied by TRUNCATE" in caught.value.cause
    assert project.new.query("SELECT count(*) FROM late") == [(0,)]
    refused_and_followed(project)


@pytest.mark.parametrize("project", ["new_pg"], indirect=True)
def test_a_partitioned_one_is_told_by_the_files_of_its_partitions(project: Project) -> None:
    """The control: one that loses a partition goes on."""
    project.new.execute(
        "DROP TABLE late",
        "CREATE TABLE late (id bigint PRIMARY KEY, customer bigint) PARTITION BY RANGE (id)",
        "CREATE TABLE early PARTITION OF late FOR VALUES FROM (-9) TO (0)",
        "CREATE TABLE first PARTITION OF late FOR VALUES FROM (0) TO (50)",
        "CREATE TABLE others PARTITION OF late FOR VALUES FROM (50) TO (9000)",
    )

    meddled(project, lambda made: made.new.execute("DROP TABLE early"))
    assert right(project)
    assert project.command("dump", "start", "--table", "orders") == 0
    with pytest.raises(TargetError, match=WHILE_WE_RUN):
        meddled(project, truncated)
    assert project.new.query("SELECT count(*) FROM late") == [(0,)]


@pytest.mark.parametrize("project", ["new_pg"], indirect=True)
def test_one_whose_file_is_written_anew_goes_on(project: Project) -> None:
    """The control: VACUUM FULL gives another file, too, and leaves the rows."""

    def vacuumed(project: Project) -> None:
        before = project.new.query("SELECT pg_relation_filenode('late')")
        with project.new.connect(autocommit=True) as connection:
            connection.execute("VACUUM FULL late")
        assert project.new.query("SELECT pg_relation_filenode('late')") != before

    meddled(project, vacuumed)
    assert right(project)


@pytest.mark.parametrize("emptied", [truncated, deleted])
def test_without_the_look_while_we_run_rows_go_into_an_emptied_table(
    project: Project, monkeypatch: pytest.MonkeyPatch, emptied: Callable[[Project], None]
) -> None:
    """Negative control."""
    monkeypatch.setattr(Identities, "among_holding", lambda self, tables: [])
    meddled(project, emptied)
    assert project.new.query("SELECT count(*) FROM late") != [(0,)]
    assert not right(project)
