"""The stories as migrations that run: under their writers, looked at in the stream, judged at rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import ConfigError
from scenarios.database import Database
from scenarios.stories.run import Plan, make_sides, play
from scenarios.stories.stories import STORIES, Story, story_of
from tests.integration.run_project import scenario_database
from tests.servers import fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

SPARK = ("[spark]", 'master = "local[2]"')


@dataclass(frozen=True)
class Case:
    """A story between two servers' fixtures, and a row that is spoilt: nothing that the writers do touches it.

    ``compared``: how many tables ``verify`` compares. ``spoil`` takes a text.
    """

    name: str
    old: str
    new: str
    table: str
    spoil: str
    right: str
    compared: int

    @property
    def story(self) -> Story:
        return STORIES[self.name]


_RENAME = "UPDATE person SET given_name = %s WHERE emp_no = 0"
CASES = (
    Case(
        "sakila", "mariadb", "postgres_target", "language",
        "UPDATE language SET name = %s WHERE language_id = 3", "Japanese", 19,
    ),
    Case("employees", "mariadb", "mysql", "person", _RENAME, "Žofia", 10),
    Case("employees", "postgres", "mariadb", "person", _RENAME, "Žofia", 10),
)  # fmt: skip


def silent(text: str) -> None:
    """Says nothing."""


@pytest.fixture(
    params=[CASES[0], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])],
    ids=lambda case: f"{case.name}-{case.old}-{case.new}",
)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture
def sides(case: Case, request: pytest.FixtureRequest) -> Iterator[tuple[Database, Database]]:
    """Both sides, empty."""
    with ExitStack() as stack:
        old, new = (
            stack.enter_context(fresh_database(request.getfixturevalue(server), side))
            for server, side in ((case.old, "old"), (case.new, "new"))
        )
        yield scenario_database(old), scenario_database(new)


def test_it_is_its_story_in_the_stream_and_at_rest(
    case: Case, sides: tuple[Database, Database], tmp_path: Path, spark: SparkSession
) -> None:
    """The control is in the same run: behind the second snapshot a row is spoilt, and each judge has to name it."""
    old, new = sides
    config = make_sides(case.story, old, new, tmp_path / "project", silent, SPARK)
    behind = "snapshot" if old.kind != "postgresql" else "writers stopped"
    heard: list[str] = []

    def say(text: str) -> None:
        heard.append(text)
        if sum(one.startswith(behind) for one in heard) == (2 if behind == "snapshot" else 1):
            change(new, case.spoil, "Klingon")

    outcome = play(case.story, old, new, config, Plan(seed=3, seconds=0, samples=3), say)
    wrong = [outcome.differences]
    if behind == "snapshot":
        first, second, spoilt = outcome.samples
        assert (first.differences, second.differences) == ((), ())
        assert 0 < first.transactions < second.transactions < spoilt.transactions, (
            "the writer wrote meanwhile"
        )
        wrong.append(spoilt.differences)
    for found in wrong:
        assert {(one.table, one.side) for one in found} == {(case.table, "missing"), (case.table, "extra")}
    assert (outcome.verdict, outcome.code) == (1, 1)
    report = json.loads((configuration.load(config).reports() / "verify.json").read_text())
    assert [one["target"] for one in report["tables"] if one["samples"]] == [case.table]
    assert len(report["tables"]) == case.compared
    actions = len(case.story.writers.ACTIONS) - 1
    assert len(outcome.writers.by_action()) == actions, "all but the one that rolls back"

    change(new, case.spoil, case.right)
    assert case.story.differences(old, new) == []
    assert replace(outcome, samples=outcome.samples[:2], differences=(), verdict=0).code == 0


def change(new: Database, statement: str, value: str) -> None:
    connection = new.connect()
    connection.cursor().execute(statement, [value])
    connection.commit()
    connection.close()


def test_an_unknown_story_or_source_is_told_what_there_is() -> None:
    with pytest.raises(ConfigError) as caught:
        story_of("northwind")
    assert "employees, sakila" in str(caught.value)
    with pytest.raises(ConfigError, match="no data for postgresql"):
        story_of("sakila", "postgresql")
    assert story_of("employees", "postgresql", "mysql")[1:] == ("postgresql", "mysql")
    assert story_of("employees")[1:] == ("mariadb", "mariadb")
    assert story_of("sakila")[1:] == ("mariadb", "postgresql")
    with pytest.raises(ConfigError, match="no schema for mysql"):
        story_of("sakila", target="mysql")
