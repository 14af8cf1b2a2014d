"""The sakila story as a migration that runs: under its writers, looked at in the stream, judged at rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator import config as configuration
from migrator.errors import ConfigError
from scenarios.database import Database
from scenarios.stories import STORIES, story_of
from scenarios.story import Plan, made, play
from tests.integration.run_project import scenario_database
from tests.servers import MariaDBServer, PostgresServer, fresh_database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

SAKILA = STORIES["sakila"]
SPARK = ("[spark]", 'master = "local[2]"')


def silent(text: str) -> None:
    """Says nothing."""


@pytest.fixture
def sides(mariadb: MariaDBServer, postgres_target: PostgresServer) -> Iterator[tuple[Database, Database]]:
    """Both sides, empty."""
    with fresh_database(mariadb, "old") as old, fresh_database(postgres_target, "new") as new:
        yield scenario_database(old), scenario_database(new)


def test_sakila_is_its_story_in_the_stream_and_at_rest(
    sides: tuple[Database, Database], tmp_path: Path, spark: SparkSession
) -> None:
    """The control is in the same run: before the third snapshot a row is spoilt, and each judge has to name it."""
    old, new = sides
    config = made(SAKILA, old, new, tmp_path / "project", silent, SPARK)
    heard: list[str] = []

    def say(text: str) -> None:
        heard.append(text)
        if sum(one.startswith("snapshot") for one in heard) == 2:
            rename_language(new, "Klingon")  # nothing that the writers do touches languages

    outcome = play(SAKILA, old, new, config, Plan(seed=3, seconds=0, samples=3), say)
    first, second, spoilt = outcome.samples
    assert (first.differences, second.differences) == ((), ())
    assert 0 < first.transactions < second.transactions < spoilt.transactions, "the writer wrote meanwhile"
    for found in (outcome.differences, spoilt.differences):
        assert {(one.table, one.side) for one in found} == {("language", "missing"), ("language", "extra")}
    assert (outcome.verdict, outcome.code) == (1, 1)
    report = json.loads((configuration.load(config).reports() / "verify.json").read_text())
    assert [one["target"] for one in report["tables"] if one["samples"]] == ["language"]
    assert len(report["tables"]) == 19
    assert len(outcome.writers.by_action()) == len(SAKILA.writers.ACTIONS) - 1, (
        "all but the one that rolls back"
    )

    rename_language(new, "Japanese")
    assert SAKILA.differences(old, new) == []
    assert replace(outcome, samples=(first, second), differences=(), verdict=0).code == 0


def rename_language(new: Database, name: str) -> None:
    with new.postgres() as session:
        session.execute("UPDATE language SET name = %s WHERE language_id = 3", [name])


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
