"""DDL on columns that mappings need: a run halts there, all before it applied; an adapted mapping goes on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MigratorError, SchemaError
from tests.integration.run_project import Project
from tests.integration.runs.ddl.altered_shop import ENGINES, begun, changes, halted, judged

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


def adapt(project: Project, old: str, new: str) -> None:
    """The mapping of ``label`` reads another column from now on."""
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text().replace(old, new)
    assert text != mapping.read_text()
    mapping.write_text(text)


def labels(project: Project) -> dict[int, str]:
    return {int(number): str(name) for number, name in project.new.query("SELECT * FROM label")}


def dumped(project: Project) -> list[str]:
    """The rows that were dumped of each table so far, as the ledger tells it."""
    name = "migrator.ledger" if project.new.kind == "postgresql" else "migrator_ledger"
    ((text,),) = project.new.query(f"SELECT checkpoint FROM {name}")
    return re.findall(r'"rows":\s*\d+', str(text))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_renamed_column_halts_there_and_the_adapted_mapping_goes_on(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """No row is read again."""
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    before = dumped(project)
    late = [f"UPDATE category SET name = 'late {n}' WHERE category_id = {n % 7 + 1}" for n in range(30)]
    stopped = halted(
        project,
        *late,
        "ALTER TABLE category RENAME COLUMN name TO title",
        "UPDATE category SET title = 'renamed' WHERE category_id = 1",
    )
    assert isinstance(stopped, SchemaError)
    assert labels(project)[1] == "late 28", "all before the change is applied, and nothing behind it"
    assert labels(project)[2] == "late 29"
    adapt(
        project,
        'category.select("category_id", "name")',
        'category.select("category_id", F.col("title").alias("name"))',
    )
    project.run_here()
    project.old.execute("UPDATE category SET title = 'more' WHERE category_id = 3")
    project.run_here()
    assert labels(project)[1] == "renamed"
    assert labels(project)[3] == "more"
    assert dumped(project) == before
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_retyped_column_goes_on_once_the_rows_of_its_table_are_asked_for(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """The server wrote all rows anew without a row event."""
    project = begun(engine, request, tmp_path, only=("label",))
    project.run_here()
    retype = "ALTER name TYPE text USING upper(name)" if engine == "pg" else "MODIFY name char(4) NOT NULL"
    project.old.execute("UPDATE category SET name = 'abc' WHERE category_id = 2")
    connection = project.old.connect()
    with connection.cursor() as cursor:
        if engine != "pg":
            cursor.execute("SET SESSION sql_mode = ''")  # what doesn't fit is cut
        cursor.execute(f"ALTER TABLE category {retype}")
    connection.close()
    for _ in range(2):
        with pytest.raises(SchemaError):
            project.run_here()
    assert project.command("dump", "start", "--table", "category") == 0
    project.old.execute("UPDATE category SET name = 'new' WHERE category_id = 1")
    project.run_here()
    project.run_here()
    wanted = {
        int(number): str(name) for number, name in project.old.query("SELECT category_id, name FROM category")
    }
    assert labels(project) == wanted
    assert wanted[1] == "new"
    assert wanted[4] in ("GROUP 4", "grou")
    assert project.command("verify", "--wait", "30") == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joined_mapping_goes_on_under_a_column_s_new_name(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """The mirror's column gets it as well, and keeps its values; a grain is computed from it."""
    project = begun(engine, request, tmp_path)
    project.run_here()
    stopped = halted(
        project,
        *changes(1),
        "ALTER TABLE product RENAME COLUMN price TO cost",
        "UPDATE product SET cost = cost + 7 WHERE product_id < 9",
    )
    assert isinstance(stopped, SchemaError)
    before = dumped(project)
    mapping = project.config.parent / "mapping.py"
    mapping.write_text(mapping.read_text().replace('"price"', '"cost"').replace(".price", ".cost"))
    project.run_here()
    project.old.execute("UPDATE product SET cost = cost + 3 WHERE product_id > 30")
    project.run_here()
    assert dumped(project) == before
    assert project.command("verify", "--wait", "30") == 0
    halted(project, "ALTER TABLE product RENAME COLUMN cost TO price", "UPDATE product SET price = price + 1")
    mapping.write_text(mapping.read_text().replace('"cost"', '"price"').replace(".cost", ".price"))
    project.run_here()
    judged(project)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_joined_mappings_never_had_stops(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path)
    project.run_here()
    project.old.execute(
        "UPDATE product SET name = 'x' WHERE product_id = 1",
        "ALTER TABLE product ADD cost decimal(10,2)",
        "UPDATE product SET cost = price",
        "ALTER TABLE product DROP COLUMN price",
    )
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text().replace('"price"', '"cost"').replace(".price", ".cost")
    mapping.write_text(text)
    with pytest.raises(MigratorError) as stopped:
        project.run_here()
    assert "product" in f"{stopped.value.where}{stopped.value.cause}{stopped.value.what}"
