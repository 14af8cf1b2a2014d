"""Conditions of the new schema beyond the sampled rows: named before a dump where that can be known, else by row."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import TargetError
from tests.integration import run_project
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ROWS = 400
"""Twice as many as are mapped as they come."""
MAPPING = """
from transforms import Mapping
mapping = Mapping()

@mapping.target("paid", key="id")
def paid(pay):
    return pay.select("id", "amount", "state", "note")
"""
CONDITIONS = {
    "amount": ("amount > 0", "0", "-3"),
    "state": ("state IN ('new', 'done')", "'old'", "'gone'"),
    "note": ("char_length(note) <= 4", "'too long'", "'longer'"),
}
"""Of each column its condition, and two values of which it takes none."""


def project_of(folder: Path, old: Database, new: Database) -> Project:
    """The last rows hold what the target doesn't take."""
    old.execute("CREATE TABLE pay (id int PRIMARY KEY, amount int, state varchar(10), note varchar(20))")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE pay REPLICA IDENTITY FULL")
    rows = ", ".join(f"({number}, {number}, 'new', 'x')" for number in range(1, ROWS + 1))
    old.execute(f"INSERT INTO pay VALUES {rows}")
    conditions = ", ".join(f"CHECK ({condition})" for condition, *_ in CONDITIONS.values())
    new.execute(
        f"CREATE TABLE paid (id int PRIMARY KEY, amount int, state varchar(10), note varchar(20), {conditions})"
    )
    made = run_project.make(folder, old, new)
    (made.config.parent / "mapping.py").write_text(MAPPING)
    return made


def spoil(project: Project, which: int) -> dict[str, int]:
    """Each column has a bad value in a row of its own."""
    found = {}
    for number, (column, (_, *values)) in enumerate(CONDITIONS.items()):
        found[column] = ROWS - 10 * number
        project.old.execute(f"UPDATE pay SET {column} = {values[which]} WHERE id = {found[column]}")
    return found


def mend(project: Project) -> None:
    project.old.execute("UPDATE pay SET amount = id, state = 'new', note = 'x'")


@pytest.mark.parametrize("target", ["new_pg", "new_maria", "new_mysql"])
def test_a_row_beyond_the_sample_that_a_condition_refuses_is_named_by_check(
    target: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    old_pg: Database,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project = project_of(tmp_path / "project", old_pg, request.getfixturevalue(target))

    def check(*arguments: str) -> tuple[int, str]:
        capfd.readouterr()
        return project.command("check", *arguments), " ".join(capfd.readouterr().out.split())

    assert check()[0] == 0
    for which in range(2):
        places = spoil(project, which)
        code, said = check()
        assert code == 2, said
        for column, key in places.items():
            assert f"paid.{column}" in said, said
            assert f"id={key}" in said, said
        assert check("--value-seconds", "0")[0] == 0, "the control: a sample alone doesn't have them"
        mend(project)  # as the remedy says
        assert check()[0] == 0


def test_conditions_of_domains_and_of_domains_of_those_are_known_too(
    tmp_path: Path,
    old_maria: Database,
    new_pg: Database,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project = project_of(tmp_path / "project", old_maria, new_pg)
    new_pg.execute(
        "DROP TABLE paid",
        "CREATE DOMAIN counted AS int CHECK (VALUE >= 1)",
        "CREATE DOMAIN few AS counted CHECK (VALUE < 1000)",
        "CREATE TABLE paid (id int PRIMARY KEY, amount few, state text, note text)",
    )
    for value in (0, 1000):
        old_maria.execute(f"UPDATE pay SET amount = {value} WHERE id = 399")
        capfd.readouterr()
        assert project.command("check") == 2
        said = capfd.readouterr().out
        assert "paid.amount" in said
        assert "id=399" in said
    mend(project)
    assert project.command("check") == 0


@pytest.mark.parametrize("met", ["dump", "stream"])
@pytest.mark.parametrize(
    ("constraint", "bad"),
    [
        ("EXCLUDE USING btree (note WITH =)", "note = 'n5'"),
        ("CHECK (amount % 7 <> 3 OR note <> 'odd')", "amount = 10, note = 'odd'"),
    ],
    ids=["exclusion", "condition"],
)
def test_what_cannot_be_known_before_is_named_by_its_row_when_it_is_met(
    tmp_path: Path,
    old_pg: Database,
    new_pg: Database,
    spark: SparkSession,
    met: str,
    constraint: str,
    bad: str,
) -> None:
    project = project_of(tmp_path / "project", old_pg, new_pg)
    old_pg.execute("UPDATE pay SET note = 'n' || id")
    new_pg.execute(
        "DROP TABLE paid",
        f"CREATE TABLE paid (id int PRIMARY KEY, amount int, state text, note text, {constraint})",
    )
    if met == "stream":
        project.run_here()
    old_pg.execute(f"UPDATE pay SET {bad} WHERE id = 300")
    for _ in range(2):
        with pytest.raises(TargetError) as caught:
            project.run_here()
        told = f"{caught.value.where} {caught.value.cause}"
        assert "paid" in told
        assert "300" in told, told
    remedy = caught.value.remedy
    assert "A source row that is corrected comes later in the event log" in remedy
    old_pg.execute("UPDATE pay SET note = 'n300', amount = 300 WHERE id = 300")
    try:
        project.run_here()
    except TargetError:
        assert "if the next start meets the same, start anew" in remedy
        assert project.command("reset", "--yes") == 0
        project.run_here()
    assert new_pg.query("SELECT count(*) FROM paid WHERE note = 'n' || id") == [(ROWS,)]
