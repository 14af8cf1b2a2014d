"""The employees story: all rows mapped, stored in the new schema and judged, from both kinds of old database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from scenarios.stories import employees
from scenarios.stories.employees import old_schema, oracle
from scenarios.stories.employees.writers import PersonnelWriters
from tests.integration.run_project import scenario_database
from tests.integration.stories.story_mapping import Types, frames, mapped, migrate, written
from tests.servers import Database, MariaDBServer, fresh_database
from transforms import load_mapping

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PROJECT = Path(employees.__file__).parent
PARENTS_FIRST = (
    "job_title", "person", "department", "department_stats", "employment", "former_employment", "assignment",
    "title_history", "salary_history", "hire_cohort",
)  # fmt: skip
SPARK_TYPES = {
    "smallint(6)": "smallint", "smallint(5) unsigned": "int", "int(11)": "int", "bigint(20)": "bigint",
    "binary(16)": "binary", "date": "date", "tinyint(1)": "boolean", "decimal(12,2)": "decimal(12,2)",
    "decimal(16,4)": "decimal(16,4)",
}  # fmt: skip
CHANGES = {
    "UPDATE dept_emp SET to_date = '2020-02-02' WHERE emp_no = 10001": [
        "assignment", "department_stats", "employment", "former_employment", "hire_cohort", "job_title",
    ],
    "INSERT INTO title VALUES (10003, 'Dean', '1990-01-01', '1995-01-01')": ["job_title", "title_history"],
    "INSERT INTO salary VALUES (10002, 1, '1997-01-01', '1997-08-03')": ["salary_history"],
    "UPDATE employee SET birth_date = '9999-12-30' WHERE emp_no = 10002": ["person"],
    "UPDATE department SET dept_name = 'Cafe' WHERE dept_no = 'd009'": ["department"],
}  # fmt: skip
WRITES = 1000
ACTIONS = 13


def types(new: Database) -> Types:
    """Spark types of the new columns."""
    found: Types = {}
    for table, column, kind in new.query(
        "SELECT table_name, column_name, column_type FROM information_schema.columns"
        " WHERE table_schema = DATABASE()"
    ):
        found.setdefault(table, {})[column] = SPARK_TYPES.get(kind, "string")
    return found


def store(spark: SparkSession, old: Database, new: Database) -> int:
    """Maps the old rows and stores them, past none of the new schema's constraints; returns their number."""
    made = dict(mapped(load_mapping(PROJECT / "mapping.py"), frames(spark, old), types(new)))
    assert set(made) == set(PARENTS_FIRST)
    connection = new.connect(autocommit=False)
    cursor = connection.cursor()
    cursor.execute("UPDATE employment SET reports_to = NULL")  # two managers may report to each other
    for name in reversed(PARENTS_FIRST):
        cursor.execute(f"DELETE FROM {name}")
    for name in PARENTS_FIRST:
        columns = made[name].column_names
        places = ", ".join(["%s"] * len(columns))
        statement = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})"
        rows = rows_of(made[name])
        if name == "employment":
            boss = columns.index("reports_to")
            cursor.executemany(statement, [(*row[:boss], None, *row[boss + 1 :]) for row in rows])
            statement += " ON DUPLICATE KEY UPDATE reports_to = VALUES(reports_to)"
        cursor.executemany(statement, rows)
    connection.commit()
    connection.close()
    return sum(table.num_rows for table in made.values())


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def new(mariadb: MariaDBServer) -> Iterator[Database]:
    """The new schema in a database of its own."""
    with fresh_database(mariadb, "new") as database:
        database.execute(f"ALTER DATABASE `{database.database}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        migrate(database, PROJECT)
        yield database


@pytest.mark.slow
def test_every_table_is_what_the_story_says(old_maria: Database, new: Database, spark: SparkSession) -> None:
    old, judged = scenario_database(old_maria), scenario_database(new)
    old_schema.load(old, extra_rows=False)
    assert store(spark, old_maria, new) > 140_000
    assert oracle.differences(old, judged) == []

    old_maria.execute(*CHANGES)  # each must show in the tables of its rule, and nothing in others
    wrong = oracle.differences(old, judged)
    assert {found.table for found in wrong} == {name for tables in CHANGES.values() for name in tables}
    assert {found.side for found in wrong} == {"missing", "extra"}

    old_schema.add_extra_rows(old)
    writers = PersonnelWriters(old, seed=3, rate_per_s=None, threads=1, limit_row_changes=WRITES)
    assert len(written(writers).by_action()) == ACTIONS
    store(spark, old_maria, new)
    assert oracle.differences(old, judged) == []


@pytest.mark.slow
def test_the_rows_of_postgresql_give_the_same(old_pg: Database, new: Database, spark: SparkSession) -> None:
    old = scenario_database(old_pg)
    old_schema.load(old)
    writers = PersonnelWriters(old, seed=3, rate_per_s=None, threads=1, limit_row_changes=WRITES)
    assert len(written(writers).by_action()) == ACTIONS
    assert store(spark, old_pg, new) > 140_000
    assert oracle.differences(old, scenario_database(new)) == []


def test_the_revisions_make_the_schema_of_the_story(new: Database, mariadb: MariaDBServer) -> None:
    def schema(database: Database) -> list[str]:
        names = [name for (name,) in database.query("SHOW TABLES") if name != "alembic_version"]
        return [database.query(f"SHOW CREATE TABLE {name}")[0][1] for name in names]

    with ExitStack() as stack:
        given = stack.enter_context(fresh_database(mariadb, "story"))
        given.execute(f"ALTER DATABASE `{given.database}` CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        script = (PROJECT / "data" / "new.mysql.sql").read_text()
        given.execute(*filter(str.strip, script.split(";\n")))
        assert schema(new) == schema(given)
        assert len(schema(given)) == 11
    assert new.query("SELECT code, label FROM gender ORDER BY 1") == [("F", "Female"), ("M", "Male")]
    migrate(new, PROJECT, "base")
    assert schema(new) == []
