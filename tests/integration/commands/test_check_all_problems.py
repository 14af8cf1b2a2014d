"""``migrator check`` names all problems of a mapping in one report, beside those of the servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MigratorError
from tests.integration import run_project
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

MAPPING = """
from pyspark.sql import functions as F
from transforms import Mapping
from transforms.gaps import gap

mapping = Mapping()
mapping.gap("later", "somebody else writes it")

@mapping.target("one", key="id")
def one(old):
    return old.select("id", gap("one", "word", "text <- term?"))

@mapping.target("two", key=())
def two(old):
    return old

@mapping.target("three", key="id")
def three(nowhere):
    return nowhere

@mapping.target("four", key="id")
def four(old):
    return old.select("id", F.col("wrod").alias("word"))

@mapping.target("absent", key="id")
def five(old):
    return old

@mapping.target("six", key="id")
def six(old):
    return old.select("id", "word")
"""
NAMED = [
    "mapping: target table 'one' can't be mapped: column 'word' is a gap",
    "mapping: the key names no column",
    "mapping: the mapping of target table 'four' refers to the unknown column 'wrod'",
    "mapping: three: it wasn't looked at: nowhere can't be read",
    "mapping: absent: it wasn't looked at: absent can't be read",
]


@pytest.fixture(params=[("old_pg", "new_pg"), ("old_maria", "new_maria"), ("old_mysql", "new_mysql")])
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Project:
    old: Database = request.getfixturevalue(request.param[0])
    new: Database = request.getfixturevalue(request.param[1])
    made = run_project.make(tmp_path / "project", old, new)
    old.execute("CREATE TABLE old (id int PRIMARY KEY, word varchar(10))")
    for name in ("one", "two", "three", "four", "six"):
        new.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, word varchar(10))")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE old REPLICA IDENTITY FULL")
    return made


def checked(project: Project, mapping: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    (project.config.parent / "mapping.py").write_text(mapping)
    capfd.readouterr()
    return project.command("check"), capfd.readouterr().out


def test_each_problem_is_named_once_whatever_else_is_wrong(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    config = project.config
    config.write_text(config.read_text().replace("[migration]", '[migration]\nalembic = "nowhere"'))
    code, said = checked(project, MAPPING, capfd)
    assert code == 2
    places = [said.index(text) for text in NAMED]
    assert places[:3] == sorted(places[:3])
    assert "gap: later" in said
    assert "revision: " in said
    assert "six" not in said.replace("t.six", "")
    told = said.count("refuses")
    assert f"{told} refusal(s)" in said
    assert told == 7, said  # later, nowhere, absent, the revisions, and three functions

    mended = MAPPING.replace('gap("one", "word", "text <- term?")', '"word"').replace("key=()", 'key="id"')
    code, said = checked(project, mended, capfd)
    assert said.count("refuses") == 5, said
    with pytest.raises(MigratorError, match=r"isn.t at its head|revisions can.t be read"):
        project.run_here()


def test_a_mapping_without_one_good_function_is_looked_at_all_the_same(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = MAPPING[: MAPPING.index('@mapping.target("one"')].replace('mapping.gap("later"', "#")
    broken += "".join(f'@mapping.target("t{n}", key=())\ndef t{n}(old): ...\n' for n in range(3))
    code, said = checked(project, broken, capfd)
    assert code == 2
    assert [said.count(f"function t{n}") for n in range(3)] == [1, 1, 1]
    assert "3 refusal(s)" in said
    with pytest.raises(MigratorError, match="the mapping has 3 problems"):
        project.run_here()
    with pytest.raises(MigratorError, match="the mapping has 3 problems"):
        project.command("try", "t1")
    capfd.readouterr()
    assert project.command("explain") == 2
    assert capfd.readouterr().out.count("can't be declared") == 3
