"""Source keys that the target takes for one stop a run by name; each way out that is printed ends equal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError, TargetError
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]
engines = pytest.mark.parametrize("project", ["new_pg", "new_mysql", "new_maria"], indirect=True)
WORDS = """
@mapping.target("words", key="name")
def words(words):
    return words.select(NAME.alias("name"), "number")
"""


@dataclass(frozen=True)
class Spelling:
    """Two texts that an engine's type takes for one.

    Attributes:
        declared: the type of the target's key.
        apart: a statement that gives the key a type which tells the two apart.
        one, other: the texts.
    """

    declared: str
    apart: str
    one: str
    other: str


FOLDED = Spelling(
    "varchar(40) COLLATE utf8mb4_unicode_ci",
    "ALTER TABLE words MODIFY name varchar(40) COLLATE utf8mb4_bin",
    "google",
    "Google",
)
SPELLINGS = {
    "postgresql": Spelling("interval", "ALTER TABLE words ALTER name TYPE text", "24:00:00", "1 day"),
    "mysql": FOLDED,
    "mariadb": FOLDED,
}


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, request: pytest.FixtureRequest, spark: SparkSession) -> Project:
    """A migration that has dumped everything, neither of the two spellings among it."""
    create(scenario_database(old_pg), 5)
    made = run_project.make(tmp_path / "project", old_pg, request.getfixturevalue(request.param))
    made.new.execute(f"CREATE TABLE words (name {spelling(made).declared} PRIMARY KEY, number int)")
    old_pg.execute(
        "CREATE TABLE words (name text PRIMARY KEY, number int)",
        "ALTER TABLE words REPLICA IDENTITY FULL",
        "INSERT INTO words VALUES ('02:00:00', 2)",
    )
    mapped(made, 'F.col("name")')
    made.run_here()
    return made


def spelling(project: Project) -> Spelling:
    return SPELLINGS[project.new.kind]


def mapped(project: Project, name: str) -> None:
    """The mapping makes this of a word's name."""
    file = project.config.parent / "mapping.py"
    file.write_text(
        file.read_text().partition("# -- more\n")[0] + "# -- more\n" + WORDS.replace("NAME", name)
    )


def numbers(database: Database) -> list[object]:
    """The words' numbers: names are spelled by the server."""
    return [number for (number,) in database.query("SELECT number FROM words ORDER BY number")]


def ends_equal(project: Project, *expected: int) -> None:
    project.run_here()
    assert numbers(project.old) == numbers(project.new) == list(expected)
    assert project.differences() == []


def refused(project: Project, says: str) -> str:
    """The remedy of the error, which the next start meets likewise when nothing was done."""
    for _ in range(2):
        with pytest.raises(TargetError, match=says) as caught:
            project.run_here()
        assert spelling(project).one in caught.value.where, caught.value.where
    return caught.value.remedy


@engines
def test_a_key_that_tells_the_two_apart_lets_the_run_go_on(project: Project) -> None:
    two = spelling(project)
    project.old.execute(f"INSERT INTO words VALUES ('{two.one}', 1)")
    ends_equal(project, 1, 2)
    project.old.execute(f"INSERT INTO words VALUES ('{two.other}', 3)")
    assert "a type or collation that tells the two apart" in refused(project, "two keys of .*words for one")
    project.new.execute(two.apart)
    ends_equal(project, 1, 2, 3)
    project.old.execute(f"DELETE FROM words WHERE name = '{two.one}'")
    ends_equal(project, 2, 3)


@engines
def test_a_row_of_another_writer_is_removed_or_the_mapping_makes_their_keys_differ(project: Project) -> None:
    two = spelling(project)
    project.new.execute(f"INSERT INTO words VALUES ('{two.one}', 9)")
    project.old.execute(f"INSERT INTO words VALUES ('{two.one}', 1)")
    assert "remove the foreign row" in refused(project, "a new row of .*words exists already")
    project.new.execute("DELETE FROM words WHERE number = 9")
    ends_equal(project, 1, 2)
    project.old.execute(f"INSERT INTO words VALUES ('{two.other}', 3)")
    assert "make their keys differ in the mapping" in refused(project, "two keys of .*words for one")
    mapped(project, 'F.when(F.col("number") == 3, F.lit("77:00:00")).otherwise(F.col("name"))')
    with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
        project.run_here()
    asks = re.search(r"migrator (dump start --table words);", caught.value.remedy)
    assert asks, caught.value.remedy
    assert "empty the table (words)" in caught.value.remedy
    project.new.execute("DELETE FROM words")
    assert project.command(*asks[1].split()) == 0
    ends_equal(project, 1, 2, 3)


@engines
def test_what_only_the_target_has_is_deleted_there_and_what_the_source_no_longer_has_in_one_batch(
    project: Project,
) -> None:
    two = spelling(project)
    project.new.execute(f"INSERT INTO words VALUES ('{two.other}', 9)")
    project.old.execute(f"INSERT INTO words VALUES ('{two.one}', 1)")
    remedy = refused(project, "two keys of .*words for one")
    assert "if only one of the two is in the source, delete the other from the target" in remedy
    project.new.execute("DELETE FROM words WHERE number = 9")
    ends_equal(project, 1, 2)
    project.old.execute(f"INSERT INTO words VALUES ('{two.other}', 3)")
    remedy = refused(project, "two keys of .*words for one")
    assert "it helps where both are applied in one batch" in remedy
    project.old.execute(f"DELETE FROM words WHERE name = '{two.one}'")
    ends_equal(project, 2, 3)
