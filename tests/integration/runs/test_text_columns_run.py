"""Columns that travel as text (`source.text_columns`) in whole runs: through the mirror of a join, and into
MySQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.project import make_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

LAST = "294276-12-31 23:59:59.999999"
"""The last moment that PostgreSQL knows; Arrow's and Spark's is in 294247."""
OLD = (
    "CREATE TABLE product (product_id int PRIMARY KEY, name text)",
    "CREATE TABLE price (price_id int PRIMARY KEY, product_id int REFERENCES product,"
    " amount numeric(12,2), until timestamp)",
    "ALTER TABLE product REPLICA IDENTITY FULL",
    "ALTER TABLE price REPLICA IDENTITY FULL",
    "INSERT INTO product VALUES (1, 'bolt'), (2, 'nut')",
    f"INSERT INTO price VALUES (1, 1, 1.50, '{LAST}'), (2, 1, 'NaN', NULL), (3, 2, NULL, '0044-03-15 12:00:00 BC')",
)
CHANGES = (
    "UPDATE product SET name = 'screw' WHERE product_id = 1",
    "UPDATE price SET amount = 'NaN', until = 'infinity' WHERE price_id = 3",
    f"INSERT INTO price VALUES (4, 2, 'NaN', '{LAST}')",
    "DELETE FROM price WHERE price_id = 1",
)
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping

mapping = Mapping()


@mapping.target("offer", key="price_id", grain="price.price_id")
def offer(price: DataFrame, product: DataFrame) -> DataFrame:
    return price.join(product, "product_id").select("price_id", "name", "amount", "until")


@mapping.target("tag", key="price_id")
def tag(price: DataFrame) -> DataFrame:
    return price.select("price_id", "amount", F.substring("until", 1, 4).alias("year"))
"""
AMOUNT = {"postgresql": "numeric", "mysql": "varchar(20)", "mariadb": "varchar(20)"}
"""What takes NaN: PostgreSQL's numeric without bounds, as it is."""
SHOWN = (
    "SELECT o.price_id, o.name, o.amount, o.until, t.amount, t.year FROM offer o JOIN tag t USING (price_id)"
    " ORDER BY 1"
)


@pytest.mark.slow
@pytest.mark.parametrize("new_name", ["new_pg", pytest.param("new_mysql", marks=pytest.mark.slow)])
def test_what_no_native_type_holds_arrives_by_dump_stream_and_mirror(
    new_name: str, request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database, spark: SparkSession
) -> None:
    new: Database = request.getfixturevalue(new_name)
    old_pg.execute(*OLD)
    new.execute(
        f"CREATE TABLE offer (price_id int PRIMARY KEY, name varchar(20), amount {AMOUNT[new.kind]},"
        " until varchar(40))",
        f"CREATE TABLE tag (price_id int PRIMARY KEY, amount {AMOUNT[new.kind]}, year varchar(4))",
    )
    source = tmp_path / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text(MAPPING)
    sides = scenario_database(old_pg), scenario_database(new)
    config = make_project(tmp_path / "project", *sides, source, "text", ("[spark]", 'master = "local[2]"'))
    config.write_text(
        config.read_text().replace("[source]", '[source]\ntext_columns = { price = ["amount", "until"] }', 1)
    )
    project = Project(old_pg, new, config)

    def shown() -> list[tuple[object, ...]]:
        return [tuple(None if value is None else str(value) for value in row) for row in new.query(SHOWN)]

    project.run_here()
    assert shown() == [
        ("1", "bolt", "1.50", LAST, "1.50", "2942"),
        ("2", "bolt", "NaN", None, "NaN", None),
        ("3", "nut", None, "0044-03-15 12:00:00 BC", None, "0044"),
    ]
    old_pg.execute(*CHANGES)
    project.run_here()
    assert shown() == [
        ("2", "screw", "NaN", None, "NaN", None),
        ("3", "nut", "NaN", "infinity", "NaN", "infi"),
        ("4", "nut", "NaN", LAST, "NaN", "2942"),
    ]
    assert project.command("verify", "--wait", "20") == 0
    new.execute("UPDATE offer SET until = '294276-12-31 23:59:59.999998' WHERE price_id = 4")
    assert project.command("verify", "--wait", "20") == 1, "the judge sees the last microsecond"
