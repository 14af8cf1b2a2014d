"""What operators do with mappings that share grains (docs/how-to/mapping/grains.md): try, explain, repair, ask both
sides, and start again after a kill in a fill and in the stream."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.commands.repair.test_repair import running
from tests.integration.joined.shared_grains import (
    DAMAGE,
    PLACED,
    differences,
    make,
    mirrored,
    wanted,
    write,
    writing,
)
from tests.integration.joined.test_joined_run import judged
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

PAIRS = [("old_pg", "new_pg"), ("old_mysql", "new_maria"), ("old_maria", "new_mysql")]
"""Each on servers of their own: what is written into a target stands in the log of its server, too."""
JOINED = ("tag", "address", "month_written")
SHARED = 'grain="customer.place = employee.place = invoice.billed_to"'
APART = 'grain=["customer.place", "employee.place", "invoice.billed_to"]'
"""The same columns as a grain each, which never meet in one row."""
QUERIES = """
format: 1
queries:
  - name: uses of a place
    old: >
      SELECT (SELECT count(*) FROM customer WHERE place = :place),
      (SELECT count(*) FROM employee WHERE place = :place), (SELECT count(*) FROM invoice WHERE billed_to = :place)
    new: SELECT customers, employees, invoices FROM address WHERE place = :place
    parameters:
      place: [Ghent, Lyon]
  - name: a tag
    old: >
      SELECT count(*), count(DISTINCT writer) FROM article_tag JOIN article ON article_id = id WHERE tag = :tag
    new: SELECT articles, writers FROM tag WHERE tag = :tag
    parameters:
      tag: [tag 1, tag 2]
"""


@pytest.fixture(params=PAIRS)
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Project:
    old, new = (request.getfixturevalue(name) for name in request.param)
    made = make(tmp_path, old, new)
    write(made, random.Random(3), 300)
    made.old.execute(*PLACED)
    return made


def tried(project: Project, capfd: pytest.CaptureFixture[str], *arguments: str, code: int) -> list[dict]:  # type: ignore[type-arg]
    capfd.readouterr()
    assert project.command("try", *arguments, "--json") == code
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def queries(old: Database) -> str:
    """What is asked of both sides: of an old table, too, whose collation takes values for one, byte by byte."""
    if old.kind == "postgresql":
        return QUERIES
    lines = QUERIES.splitlines()
    return "\n".join(one if "new:" in one else one.replace("= :", "= BINARY :") for one in lines)


def test_shared_grains_are_tried_and_explained_and_a_grain_each_is_refused(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    for table in JOINED:
        by_key, met = {row[0]: row for row in wanted(project)[table]}, 0
        for one in tried(project, capfd, table, "--limit", "20", code=0):
            for row in one["new"]:
                found = tuple(map(str, row.values()))
                assert found == by_key[found[0]], (table, one)
                met += "0" not in found
        assert met, f"no row of {table} is made of all the tables of its grain"
    assert project.command("check", "--value-seconds", "0") == 0
    assert project.command("explain", "address") == 0
    said = capfd.readouterr().out
    assert all(name in said for name in ("customer.place", "employee.place", "invoice.billed_to")), said
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text()
    mapping.write_text(text.replace(SHARED, APART))
    assert mapping.read_text() != text
    assert any(one["problems"] for one in tried(project, capfd, "address", "--limit", "20", code=1))
    assert project.command("check") == 2


def test_shared_grains_are_asked_on_both_sides_judged_and_repaired_by_key(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.run_here()
    assert differences(project) == {}
    write(project, random.Random(4), 60)
    project.run_here()
    assert differences(project) == {}
    file = project.config.parent / "queries.yaml"
    file.write_text(queries(project.old))
    assert project.command("dual-read", "run", str(file)) == 0
    project.new.execute(*DAMAGE)
    assert set(differences(project)) == set(JOINED)
    assert project.command("dual-read", "run", str(file), "--wait", "10") == 1, "the control"
    assert project.command("verify", "--wait", "10") == 1
    with running(project):
        assert project.command("repair", "--apply") == 0
    assert differences(project) == {}
    assert judged(project) == 0
    assert project.command("dual-read", "run", str(file)) == 0


def test_killed_in_a_fill_and_in_the_stream_shared_grains_end_equal(project: Project) -> None:
    with writing(project, 4):
        for point in ("fill.committed:2", "target.mirrored:3", "target.moved:2"):
            process = project.process("run", "--plain", crash_at=point)
            try:
                output, _ = process.communicate(timeout=240)
            finally:
                process.kill()
            assert process.returncode == -signal.SIGKILL, f"{point} was never reached:\n{output}"
    project.old.execute("INSERT INTO employee VALUES (990, 'Ghent')")  # whatever the writers have left there
    project.run_here()
    assert differences(project) == {}
    assert judged(project) == 0
    # the control: a batch that doesn't see one of the tables of a grain makes wrong rows
    project.new.execute(f"DELETE FROM {mirrored(project.new, 'employee')}")
    project.old.execute("INSERT INTO customer VALUES (990, 'Ghent')")
    project.run_here()
    assert set(differences(project)) == {"address"}
    assert judged(project) == 1
