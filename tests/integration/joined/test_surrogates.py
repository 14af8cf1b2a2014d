"""Keys of the new schema that a sequence makes: numbers of a key map, the same for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import TargetError
from migrator.model.requests.request import RequestState
from migrator.run.commands.repair import Wanted, repair_steps
from migrator.wiring import parts as wiring
from migrator.wiring import repair as wiring_repair
from scenarios.project import make_project
from tests.integration.commands.repair.test_repair import running
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

OLD = (
    "CREATE TABLE customer (code varchar(9) PRIMARY KEY, name varchar(20))",
    "CREATE TABLE staff (code varchar(9) PRIMARY KEY, name varchar(20))",
    "CREATE TABLE visit (visit_id integer PRIMARY KEY, customer varchar(9), guide varchar(9))",
    *(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in ("customer", "staff", "visit")),
    "INSERT INTO customer VALUES ('b', 'Bo'), ('a', 'Al'), ('B ', 'Other')",
    "INSERT INTO staff VALUES ('a', 'Ann')",
    "INSERT INTO visit VALUES (1, 'a', 'a'), (2, 'b', NULL), (3, 'a', 'a')",
)
NEW = (
    "CREATE TABLE person (person_id integer PRIMARY KEY, name varchar(20) NOT NULL, visits integer NOT NULL)",
    "CREATE TABLE tour (visit_id integer PRIMARY KEY, person_id bigint, guide_id bigint)",
)
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping

mapping = Mapping()


def key(kind, code):
    return F.concat(F.lit(kind + "|"), code)


@mapping.target(
    "person", key="person_id", surrogates={"person_id": "person"}, grain=["customer.code", "staff.code"],
    links=["visit.customer = customer.code"],
)
def person(customer: DataFrame, staff: DataFrame, visit: DataFrame) -> DataFrame:
    counted = visit.groupBy(F.col("customer").alias("code")).agg(F.count("*").alias("visits"))
    return (
        customer.join(counted, "code", "left")
        .select(key("customer", F.col("code")).alias("person_id"), "name",
                F.coalesce("visits", F.lit(0)).alias("visits"))
        .unionByName(staff.select(key("staff", F.col("code")).alias("person_id"), "name", F.lit(0).alias("visits")))
    )


@mapping.target("tour", key="visit_id", surrogates={"person_id": "person", "guide_id": "person"})
def tour(visit: DataFrame) -> DataFrame:
    return visit.select(
        "visit_id",
        key("customer", F.col("customer")).alias("person_id"),
        key("staff", F.col("guide")).alias("guide_id"),
    )
"""
REPORT = (
    "SELECT t.visit_id, p.name, p.visits, g.name FROM tour t LEFT JOIN person p ON p.person_id = t.person_id"
    " LEFT JOIN person g ON g.person_id = t.guide_id ORDER BY t.visit_id"
)


def make(folder: Path, old: Database, new: Database) -> Project:
    source = folder / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text(MAPPING)
    sides = scenario_database(old), scenario_database(new)
    spark = ("[spark]", 'master = "local[2]"')
    return Project(old, new, make_project(folder / "project", *sides, source, "numbers", spark))


@pytest.fixture(params=["new_pg", pytest.param("old_maria", marks=pytest.mark.slow), "new_mysql"])
def project(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database) -> Project:
    new = request.getfixturevalue(request.param)
    old_pg.execute(*OLD)
    new.execute(*NEW)
    return make(tmp_path, old_pg, new)


def persons(project: Project) -> dict[str, int]:
    return {
        str(name): int(str(number))
        for name, number in project.new.query("SELECT name, person_id FROM person")
    }


@pytest.mark.slow
def test_numbers_stay_through_changes_restarts_and_a_dump_made_anew(
    project: Project, spark: SparkSession
) -> None:
    project.run_here()
    first = persons(project)
    assert sorted(first.values()) == [1, 2, 3, 4], "a sequence's numbers, one for each old key"
    assert project.new.query(REPORT) == [(1, "Al", 2, "Ann"), (2, "Bo", 1, None), (3, "Al", 2, "Ann")]

    project.old.execute(
        "INSERT INTO customer VALUES ('c', 'Cy')",
        "UPDATE visit SET customer = 'c' WHERE visit_id = 3",
        "DELETE FROM customer WHERE code = 'b'",
        "UPDATE staff SET name = 'Anna' WHERE code = 'a'",
    )
    project.run_here()
    second = persons(project)
    assert second == {"Al": first["Al"], "Other": first["Other"], "Anna": first["Ann"], "Cy": 5}
    assert project.command("verify", "--wait", "20") == 0
    number = second["Anna"]
    project.new.execute(f"UPDATE tour SET guide_id = {second['Al']} WHERE visit_id = 1")
    assert project.command("verify", "--wait", "20", "--table", "tour") == 1, "the judge sees a wrong number"
    project.new.execute(f"UPDATE tour SET guide_id = {number} WHERE visit_id = 1")

    ledger = "migrator.ledger" if project.new.kind == "postgresql" else "migrator_ledger"
    project.new.execute(f"DELETE FROM {ledger}", "DELETE FROM tour", "DELETE FROM person")
    project.old.execute(
        "SELECT pg_drop_replication_slot('migrator_numbers')",
        "INSERT INTO customer VALUES ('b', 'Bo again'), ('0', 'first by key')",
    )
    shutil.rmtree(project.config.parent / ".migrator")
    project.run_here()
    assert persons(project) == {**second, "Bo again": first["Bo"], "first by key": 6}
    assert project.command("verify", "--wait", "20") == 0


@pytest.mark.slow
def test_rows_with_numbers_are_repaired_under_the_keys_that_the_target_has(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    old_pg.execute(*OLD)
    new_pg.execute(*NEW)
    project = make(tmp_path, old_pg, new_pg)
    project.run_here()
    before = persons(project)
    new_pg.execute(
        "DELETE FROM person WHERE name = 'Al'",
        "UPDATE person SET visits = 9 WHERE name = 'Bo'",
        "INSERT INTO person VALUES (77, 'rogue', 0)",
        "UPDATE tour SET person_id = 2, guide_id = 3",
    )
    keys = tuple((str(number),) for number in (*before.values(), 77, -5, "customer|a"))
    wanted = (Wanted("person", ("person_id",), keys), Wanted("tour", ("visit_id",), (("1",), ("2",), ("3",))))
    settings = configuration.load(project.config)
    steps = repair_steps(wiring.parts(settings), wanted)
    with running(project):
        names = wiring_repair.begin_repair(settings, steps)
        done = wiring_repair.await_repair(settings, names, 300)
    assert {request.state for request in done} == {RequestState.DONE}
    assert persons(project) == before
    assert new_pg.query(REPORT) == [(1, "Al", 2, "Ann"), (2, "Bo", 1, None), (3, "Al", 2, "Ann")]


def test_a_column_that_holds_no_numbers_is_refused_by_name(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    old_pg.execute(*OLD)
    new_pg.execute(NEW[0].replace("person_id integer", "person_id text"), NEW[1])
    with pytest.raises(TargetError, match=r"person_id .*numbers of a key map.*it is text"):
        make(tmp_path, old_pg, new_pg).run_here()
