"""A repair that must read the whole source table, held in one batch; and a range of keys on MariaDB and MySQL."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import split

import pytest
from pyspark.sql import SparkSession

from migrator.cli import cli
from migrator.config import project as configuration
from migrator.run.commands.repair import Way
from tests.integration.commands.repair import test_repair
from tests.integration.commands.repair.test_repair import dumped, hitting, running
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]


def computed_key(project: Project) -> None:
    """The same rows, by a mapping whose key can't be told back to the source's."""
    file = project.config.parent / "mapping.py"
    text = file.read_text()
    assert text.count('F.col("id").alias(') == 1
    file.write_text(text.replace('F.col("id").alias(', '(F.col("id") + F.lit(0)).alias('))


@pytest.mark.slow
def test_a_whole_table_is_held_while_writers_hit_the_same_keys(
    tmp_path: Path, old_maria: Database, new_pg: Database, spark: SparkSession
) -> None:
    project = dumped(tmp_path, old_maria, new_pg, computed_key)
    assert project.command("verify") == 1
    reports = configuration.load(project.config).reports()
    with running(project), hitting(project):
        shown = json.loads((reports / "verify.json").read_text())["repair"]
        assert cli.main([*split(shown)[1:], "--apply"], standalone_mode=False) == 0  # as the page says
    document = json.loads((reports / "repair.json").read_text())
    (step,) = document["planned"]
    assert (step["way"], step["keys"]) == (Way.WHOLE.value, 5)
    assert step["rows"] >= test_repair.ROWS
    assert (document["verdict"], document["before"]) == (
        "repaired",
        {"purchase": {"different": 2, "extra": 1, "missing": 2}},
    )
    project.run_here()
    assert project.differences() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [("old_maria", "new_mysql"), pytest.param("old_mysql", "new_maria", marks=pytest.mark.slow)],
)
def test_a_range_is_repaired_between_mariadb_and_mysql_and_nothing_beside_it(
    tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession, old: str, new: str
) -> None:
    project = dumped(tmp_path, request.getfixturevalue(old), request.getfixturevalue(new))
    asked = ("repair", "--table", "purchase", "--range", "12", "22")
    reports = configuration.load(project.config).reports()
    before = project.differences()
    assert project.command(*asked) == 1
    plan = json.loads((reports / "repair-plan.json").read_text())
    assert plan["before"] == {"purchase": {"different": 1, "missing": 2}}
    assert project.differences() == before
    with running(project), hitting(project):
        assert cli.main(split(plan["command"])[1:], standalone_mode=False) == 0  # as the page says
    document = json.loads((reports / "repair.json").read_text())
    assert (document["verdict"], document["before"]) == ("repaired", plan["before"])
    assert {key for key, *_ in project.differences()} & {12, 21, 22, test_repair.EXTRA} == {test_repair.EXTRA}
