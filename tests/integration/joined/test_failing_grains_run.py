"""Whole runs whose joined mappings fail on some grains: kills, `verify`, `rows`, the last gate, children."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import RequestError
from tests.integration.joined.failing_grains import WAYS, all_good, aside, changes, holds, make
from tests.integration.run_project import Project

pytestmark = [pytest.mark.integration, pytest.mark.spark]
BASKETS = 12
REMARK = """

@mapping.target("remark", key="id")
def remark(remark):
    return remark.select("id", "basket_id")
"""


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Project:
    old, new = (request.getfixturevalue(name) for name in request.param)
    return make(tmp_path, old, new, BASKETS)


def counts(project: Project, capfd: pytest.CaptureFixture[str], code: int) -> dict[str, dict[str, int]]:
    """What `migrator verify`, which ends with this code, counts of each target."""
    capfd.readouterr()
    assert project.command("verify", "--json") == code
    found = {one["target"]: one["counts"] for one in json.loads(capfd.readouterr().out)["tables"]}
    return {target: {name: n for name, n in of.items() if n} for target, of in found.items()}


@pytest.mark.parametrize(
    "project", [pytest.param(WAYS[0], marks=pytest.mark.slow), WAYS[1]], indirect=True, ids=str
)
def test_failing_grains_from_the_first_dump_to_the_hand_over(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.old.execute(
        "UPDATE basket SET note = 'raise' WHERE id = 3",
        "UPDATE basket SET note = 'nokey' WHERE id = 4",
        "UPDATE line SET amount = 'none' WHERE basket_id = 5 AND no = 0",
    )
    project.run_here()
    assert holds(project) == 3
    found = counts(project, capfd, 1)
    assert found["worth"] == {"compared": BASKETS - 2, "equal": BASKETS - 2, "bad_rows": 2}
    assert found["total"] == {"compared": BASKETS - 1, "equal": BASKETS - 1, "bad_rows": 1}
    assert found["plain"] == {"compared": BASKETS, "equal": BASKETS}
    assert project.command("rows", "set-aside") == 0
    assert "worth grain basket.id=3: at" in capfd.readouterr().out
    with pytest.raises(RequestError, match=r"3 row\(s\) are set aside") as refused:
        project.command("sequences", "--apply")
    assert "worth basket.id=3" in refused.value.where
    assert project.command("rows", "drop", "worth", "3", "--reason", "a test") == 0
    dropped = {("3",): "a test", ("5",): ""}
    assert {one.key: one.dropped for one in aside(project) if one.target == "worth"} == dropped
    assert project.command("remap", "worth") == 0
    project.old.execute("UPDATE basket SET note = 'fine' WHERE id = 1")
    project.run_here()
    assert {one.key: one.dropped for one in aside(project) if one.target == "worth"} == dropped
    assert holds(project) == 3
    all_good(project)
    project.run_here()
    assert holds(project) == 0
    assert counts(project, capfd, 0)["worth"] == {"compared": BASKETS, "equal": BASKETS}
    project.new.execute("UPDATE worth SET worth = 7777 WHERE id = 3")
    assert counts(project, capfd, 1)["worth"]["different"] == 1, "the control"


@pytest.mark.parametrize(
    "project", [WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.slow)], indirect=True, ids=str
)
def test_children_of_a_grain_follow_it(project: Project) -> None:
    old, new = project.old, project.new
    old.execute("CREATE TABLE remark (id int PRIMARY KEY, basket_id int NOT NULL)")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE remark REPLICA IDENTITY FULL")
    old.execute("INSERT INTO remark VALUES (1, 1), (2, 2), (3, 3)")
    new.execute(
        "CREATE TABLE remark (id int PRIMARY KEY, basket_id int NOT NULL,"
        " FOREIGN KEY (basket_id) REFERENCES worth (id))"
    )
    with (project.config.parent / "mapping.py").open("a") as mapping:
        mapping.write(REMARK)
    old.execute("UPDATE basket SET note = 'raise' WHERE id = 3")
    project.run_here()
    assert new.query("SELECT id FROM remark ORDER BY id") == [(1,), (2,)]
    old.execute("UPDATE basket SET note = 'raise' WHERE id = 2")
    project.run_here()
    assert new.query("SELECT id FROM remark ORDER BY id") == [(1,)]
    assert {(one.target, one.key[0], one.grain) for one in aside(project)} == {
        ("worth", "2", True),
        ("worth", "3", True),
        ("remark", "2", False),
        ("remark", "3", False),
    }
    old.execute("UPDATE basket SET note = 'good'")
    project.run_here()
    assert new.query("SELECT id FROM remark ORDER BY id") == [(1,), (2,), (3,)]
    assert aside(project) == []


@pytest.mark.slow
@pytest.mark.parametrize("project", WAYS, indirect=True, ids=str)
def test_killed_at_any_point_exactly_the_grains_that_fail_are_aside(project: Project) -> None:
    drawn, killed = random.Random(7), 0
    for point in ("joined.aside", "target.merged", "joined.aside", "target.moved", "target.committed"):
        project.old.execute(*changes(drawn, BASKETS))
        project.old.execute(f"UPDATE basket SET note = 'raise' WHERE id = {drawn.randint(1, BASKETS)}")
        process = project.process("run", "--until", "caught-up", crash_at=point)
        output, _ = process.communicate(timeout=240)
        assert process.returncode in (0, -signal.SIGKILL), output
        killed += process.returncode != 0
        project.run_here()
        assert holds(project)
    assert killed >= 3, "points were not reached"
    all_good(project)
    project.run_here()
    assert holds(project) == 0
