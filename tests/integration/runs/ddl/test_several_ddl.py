"""Several changes of a needed column within one stop: under its last name the mapping goes on, and no row is read
again."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MigratorError, SchemaError, TargetError
from tests.integration.run_project import Project
from tests.integration.runs.ddl.altered_shop import ENGINES, begun, changes, ddl, halted, judged
from tests.integration.runs.ddl.test_needed_ddl import adapt, dumped, labels

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

READ = 'category.select("category_id", "name")'


def renamed(old: str, new: str, table: str = "category") -> str:
    return f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"


def named(column: str, number: int, name: str) -> str:
    return f"UPDATE category SET {column} = '{name}' WHERE category_id = {number}"


def several(engine: str) -> list[str]:
    """Two other names, and what can be done to unneeded columns in between; each name has rows.

    Not on PostgreSQL what has all rows written anew: beside another name it could be the needed column's.
    """
    unneeded = [one for one in ddl(engine, "category") if engine != "pg" or "TYPE" not in one]
    return [
        named("name", 7, "before"),
        renamed("name", "t1"),
        named("t1", 1, "first"),
        *unneeded[:3],
        named("t1", 2, "under it"),
        renamed("t1", "t2"),
        named("t2", 3, "second"),
        *unneeded[3:],
        named("t2", 4, "last"),
    ]


def adapted(project: Project, name: str) -> None:
    adapt(project, READ, f'category.select("category_id", F.col("{name}").alias("name"))')


def wanted(project: Project, column: str) -> dict[int, str]:
    return {int(n): str(v) for n, v in project.old.query(f"SELECT category_id, {column} FROM category")}


@pytest.mark.parametrize("beside", [True, False], ids=["beside a run", "while none runs"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_renamed_twice_goes_on_under_its_last_name(
    engine: str, beside: bool, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    before = dumped(project)
    if beside:
        assert isinstance(halted(project, *several(engine)), SchemaError)
        assert labels(project)[7] == "before"
        assert labels(project)[1] != "first", "nothing behind the place is applied"
    else:
        project.old.execute(*several(engine))
    adapted(project, "t2")
    project.run_here()
    assert labels(project) == wanted(project, "t2")
    project.old.execute(renamed("t2", "t3"), named("t3", 5, "back"), renamed("t3", "t2"), named("t2", 6, "x"))
    project.run_here()
    assert labels(project) == wanted(project, "t2")
    assert dumped(project) == before
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joined_mapping_goes_on_once_the_old_name_is_given_again(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Nobody has noted the names that were given while no run ran; rows written under them are read all the same."""
    project = begun(engine, request, tmp_path)
    project.run_here()
    before = dumped(project)
    project.old.execute(
        *changes(1),
        renamed("price", "p1", "product"),
        "UPDATE product SET p1 = p1 + 7 WHERE product_id < 9",
        renamed("p1", "cost", "product"),
        "UPDATE product SET cost = cost + 3 WHERE product_id > 30",
    )
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text()
    mapping.write_text(text.replace('"price"', '"cost"').replace(".price", ".cost"))
    with pytest.raises(TargetError, match="doesn't hold what the mapping reads") as refused:
        project.run_here()
    assert "give it the old one again, start the run, and rename it then" in refused.value.remedy
    project.old.execute(renamed("cost", "price", "product"), *changes(2))
    mapping.write_text(text)
    project.run_here()
    assert dumped(project) == before
    judged(project)


@pytest.mark.parametrize("engine", ENGINES)
def test_values_written_anew_beside_the_new_name_stop(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """No row event tells of them: going on would keep the values of before."""
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    retype = "ALTER name TYPE text USING upper(name)" if engine == "pg" else "MODIFY name varchar(5) NOT NULL"
    project.old.execute("UPDATE category SET name = left(name, 5)")
    project.run_here()
    project.old.execute(f"ALTER TABLE category {retype}", renamed("name", "t2"), named("t2", 3, "some"))
    adapted(project, "t2")
    for _ in range(2):
        with pytest.raises(MigratorError):
            project.run_here()
    assert project.command("dump", "start", "--table", "category") == 0
    project.run_here()
    project.run_here()
    assert labels(project) == wanted(project, "t2")
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_that_another_column_gets_at_once_stops(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """The mapping reads the name as ever; all rows have other values under it."""
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    taken = "ALTER TABLE category DROP COLUMN name, RENAME COLUMN worn TO name"
    if engine == "pg":
        taken = (
            "BEGIN; ALTER TABLE category DROP COLUMN name; ALTER TABLE category RENAME worn TO name; COMMIT"
        )
    project.old.execute(taken, named("name", 3, "some"))
    for _ in range(2):
        with pytest.raises(MigratorError):
            project.run_here()
    assert project.command("dump", "start", "--table", "category") == 0
    project.run_here()
    project.run_here()
    assert labels(project) == wanted(project, "name")
    assert labels(project)[1] == "old"
    assert project.command("verify", "--wait", "30") == 0


def test_what_was_rolled_back_is_as_if_it_had_never_been(
    old_pg: object, new_pg: object, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Also within a savepoint whose rows under the other name the log has before it is rolled back."""
    project = begun("pg", request, tmp_path, only=("label",))
    project.run_here()
    before = dumped(project)
    connection = project.old.connect()
    connection.autocommit = False
    with connection.cursor() as cursor:
        for statement in (renamed("name", "t1"), named("t1", 1, "never")):
            cursor.execute(statement)
        connection.rollback()
        for statement in (
            named("name", 2, "first"),
            "SAVEPOINT s",
            renamed("name", "t1"),
            named("t1", 1, "never"),
            "ALTER TABLE category DROP COLUMN gone",
            named("t1", 4, "never"),
            "ROLLBACK TO SAVEPOINT s",
            named("name", 3, "last"),
            "ALTER TABLE category DROP COLUMN worn",
            named("name", 5, "behind"),
        ):
            cursor.execute(statement)
        connection.commit()
    connection.close()
    project.run_here()
    assert labels(project) == wanted(project, "name")
    assert dumped(project) == before
    assert project.command("verify", "--wait", "30") == 0
