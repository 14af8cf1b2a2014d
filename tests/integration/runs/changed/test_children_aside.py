"""Rows set aside with their parents in whole runs: row-wise and joined ones, killed, and tried again by the run."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.wiring.coordination import look
from migrator.wiring.target import bad_rows
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark]
WAYS = [("old_pg", "new_pg"), ("old_maria", "new_pg"), ("old_pg", "new_maria"), ("old_pg", "new_mysql")]
OLD = (
    "CREATE TABLE member (id int PRIMARY KEY, boss int, name varchar(40) NOT NULL)",
    "CREATE TABLE ticket (id int PRIMARY KEY, member int NOT NULL, words varchar(40) NOT NULL)",
)
NEW = (
    "CREATE TABLE person (id int PRIMARY KEY, boss int, name varchar(40) NOT NULL, CHECK (char_length(name) < 9),"
    " CONSTRAINT person_boss FOREIGN KEY (boss) REFERENCES person (id))",
    "CREATE TABLE note (id int PRIMARY KEY, person int NOT NULL, words varchar(40) NOT NULL,"
    " CONSTRAINT note_person FOREIGN KEY (person) REFERENCES person (id) ON DELETE CASCADE)",
    "CREATE TABLE tally (person int PRIMARY KEY, notes bigint NOT NULL,"
    " CONSTRAINT tally_person FOREIGN KEY (person) REFERENCES person (id))",
)
MAPPING = """
from pyspark.sql import functions as F
from transforms import Mapping

mapping = Mapping()


@mapping.target("person", key="id")
def person(member):
    return member.select("id", "boss", "name")


@mapping.target("note", key="id")
def note(ticket):
    return ticket.select("id", F.col("member").alias("person"), "words")


@mapping.target("tally", key="person", grain="member.id", links=["ticket.member = member.id"])
def tally(member, ticket):
    counted = ticket.groupBy("member").agg(F.count("*").alias("notes"))
    joined = member.join(counted, member.id == counted.member, "left")
    return joined.select(member.id.alias("person"), F.coalesce("notes", F.lit(0)).cast("bigint").alias("notes"))
"""
LONG = "far too long a name"
MEMBERS, TICKETS = 20, 40
Rows = dict[tuple[str, int], tuple[object, ...]]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Project:
    """Members with bosses and tickets; persons have short names."""
    old, new = (request.getfixturevalue(name) for name in request.param)
    create(scenario_database(old), 1)
    made = run_project.make(tmp_path / "project", old, new)
    old.execute(*OLD)
    if old.kind == "postgresql":
        old.execute(*(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("member", "ticket")))
    for key in range(1, MEMBERS + 1):
        old.execute(f"INSERT INTO member VALUES ({key}, {key // 2 or 'NULL'}, 'm{key}')")
    for key in range(1, TICKETS + 1):
        old.execute(f"INSERT INTO ticket VALUES ({key}, {1 + key % MEMBERS}, 't{key}')")
    new.execute(*NEW)
    (made.config.parent / "mapping.py").write_text(MAPPING)
    made.config.write_text(made.config.read_text() + '\n[apply]\nbad_rows = "set_aside"\n')
    return made


def mapped(project: Project) -> Rows:
    """What the mapping makes of the source, by plain Python."""
    members = {int(one[0]): one for one in project.old.query("SELECT id, boss, name FROM member")}
    tickets = [
        (int(one[0]), int(one[1]), one[2])
        for one in project.old.query("SELECT id, member, words FROM ticket")
    ]
    found: Rows = {("person", key): (one[1], one[2]) for key, one in members.items()}
    found |= {("note", key): (member, words) for key, member, words in tickets}
    return found | {("tally", key): (sum(member == key for _, member, _ in tickets),) for key in members}


def there(project: Project) -> Rows:
    return {
        (name, int(row[0])): tuple(row[1:])
        for name, columns in (("person", "boss, name"), ("note", "person, words"), ("tally", "notes"))
        for row in project.new.query(f"SELECT {'person' if name == 'tally' else 'id'}, {columns} FROM {name}")
    }


def rooted(rows: Rows) -> Rows:
    """Those that fit, and point at such."""
    left = {key: row for key, row in rows.items() if row[-1] != LONG}
    while True:
        found = {
            (name, key): row
            for (name, key), row in left.items()
            if (parent := key if name == "tally" else row[0]) is None or ("person", parent) in left
        }
        if found == left:
            return found
        left = found


def aside(project: Project) -> set[tuple[str, int]]:
    return {(one.target, int(one.key[0])) for one in bad_rows(configuration.load(project.config))}


def holds(project: Project, settled: bool = False) -> None:
    """The target is the mapping without exactly the keys set aside; ``settled``: nothing waits in vain."""
    expected, found, bad = mapped(project), there(project), aside(project)
    assert found == {key: row for key, row in expected.items() if key not in bad}
    if settled:
        assert found == rooted(expected)


@pytest.mark.parametrize(
    "project", [pytest.param(WAYS[1], marks=pytest.mark.slow), WAYS[2]], indirect=True, ids=str
)
def test_children_go_with_their_parent_and_come_back(project: Project) -> None:
    project.old.execute(f"UPDATE member SET name = '{LONG}' WHERE id = 5")
    project.run_here()
    holds(project, settled=True)
    assert {("person", 5), ("person", 10), ("person", 20), ("tally", 20), ("note", 4)} <= aside(project)
    assert project.command("verify") == 1
    project.old.execute(
        f"UPDATE member SET name = '{LONG}' WHERE id = 3", "UPDATE member SET name = 'm' WHERE id = 5"
    )
    project.run_here()
    holds(project, settled=True)
    assert {("person", 6), ("tally", 3)} <= aside(project), "of 3 and below"
    assert ("person", 10) not in aside(project), "the run asked for its source row by itself"
    project.old.execute("UPDATE member SET name = 'm' WHERE id = 3")
    project.run_here()
    assert aside(project) == set()
    holds(project, settled=True)
    assert project.command("verify") == 0


KILLS = (
    "target.orphaned",
    "target.refused",
    "target.moved",
    "target.committed",
    "apply.committed",
    "run.led",
)


@pytest.mark.slow
@pytest.mark.parametrize("project", WAYS, indirect=True, ids=str)
def test_killed_at_any_point_exactly_the_rows_without_parents_are_aside(project: Project) -> None:
    drawn, killed = random.Random(7), 0
    project.run_here()
    for number in range(6):
        for key in drawn.sample(range(1, MEMBERS + 1), 5):
            name = drawn.choice((LONG, f"n{number}", f"k{number}"))
            project.old.execute(f"UPDATE member SET name = '{name}' WHERE id = {key}")
        project.old.execute(f"UPDATE ticket SET words = 'w{number}' WHERE id < {drawn.randint(2, 9)}")
        process = project.process(
            "run", "--until", "caught-up", crash_at=f"{KILLS[number]}:{drawn.randint(1, 2)}"
        )
        output, _ = process.communicate(timeout=240)
        assert process.returncode in (0, -signal.SIGKILL), output
        killed += process.returncode != 0
        project.run_here()
        holds(project, settled=True)
    assert killed, "no point was reached"
    project.old.execute("UPDATE member SET name = 'good'")
    project.run_here()
    holds(project, settled=True)
    assert aside(project) == set()


@pytest.mark.slow
@pytest.mark.parametrize("project", WAYS[:1], indirect=True, ids=str)
def test_a_row_that_was_dropped_is_not_tried_by_the_run(project: Project) -> None:
    project.old.execute(f"UPDATE member SET name = '{LONG}' WHERE id = 20")
    project.run_here()
    assert aside(project) == {("person", 20), ("tally", 20), ("note", 19), ("note", 39)}
    project.command("rows", "drop", "note", "19", "--reason", "nobody reads it")
    project.old.execute("UPDATE member SET name = 'm' WHERE id = 20")
    project.run_here()
    assert aside(project) == {("note", 19)}
    running = project.process("run")
    try:
        await_true(lambda: bool(look(configuration.load(project.config)).leader), "it leads", 120)
        assert project.command("rows", "retry", "note", "19", "--wait", "120") == 0
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    assert aside(project) == set()
    holds(project, settled=True)
