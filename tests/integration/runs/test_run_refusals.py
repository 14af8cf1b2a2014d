"""A user's mistakes: each is one clear message, loses nothing, and once mended the run goes on and ends equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import (
    ConfigError,
    ConnectionFailed,
    MappingError,
    MigratorError,
    PreflightError,
    TargetError,
)
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

SCALED = 'F.col("customer").alias("customer_id")'


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession) -> Project:
    create(scenario_database(old_pg), 500)
    return run_project.make(tmp_path / "project", old_pg, new_pg)


def refused(project: Project, kind: type[MigratorError], *says: str) -> None:
    """The run ends in this named error, whose lines hold these words."""
    with pytest.raises(kind) as caught:
        project.run_here()
    text = "\n".join(caught.value.lines())
    for words in says:
        assert words in text, text
    assert "remedy" in text


def ends_equal(project: Project) -> None:
    project.run_here()
    assert project.differences() == []


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_an_unreachable_server(project: Project) -> None:
    port = f"port = {project.old.port}"
    change(project.config, f'{port}\ndatabase = "{project.old.database}"', 'port = 1\ndatabase = "x"')
    refused(project, ConnectionFailed, "127.0.0.1:1")
    assert project.command("check", "--help") == 0


def test_an_unknown_setting(project: Project) -> None:
    change(project.config, "[spark]", "[capture]\nchunk_rowz = 3\n[spark]")
    refused(project, ConfigError, "chunk_rowz")


def test_a_target_not_at_head(project: Project) -> None:
    project.new.execute("DROP TABLE purchase", "DROP TABLE alembic_version")
    refused(project, PreflightError, "migrator schema upgrade")


def test_a_missing_grant_and_a_role_without_replication(project: Project) -> None:
    project.old.execute("DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN")
    change(project.config, f'user = "{project.old.user}"\n\n[target]', 'user = "poor"\n\n[target]')
    refused(project, PreflightError, "REPLICATION", "GRANT SELECT")


def test_a_table_without_a_key_and_without_full_images(project: Project) -> None:
    project.old.execute(
        "ALTER TABLE orders DROP CONSTRAINT orders_pkey", "ALTER TABLE orders REPLICA IDENTITY DEFAULT"
    )
    refused(project, PreflightError, "ADD PRIMARY KEY", "REPLICA IDENTITY FULL")
    project.old.execute("ALTER TABLE orders ADD PRIMARY KEY (id)", "ALTER TABLE orders REPLICA IDENTITY FULL")
    ends_equal(project)


@pytest.mark.slow
def test_a_mapping_that_fails_on_one_row(project: Project) -> None:
    mapping = project.config.parent / "mapping.py"
    project.old.execute("UPDATE orders SET customer = 0 WHERE id = 321")
    change(mapping, SCALED, 'F.expr("customer + 0 * (1 div customer)").alias("customer_id")')
    project.old.execute("UPDATE orders SET customer = 1 WHERE customer = 0 AND id <> 321")
    refused(project, MappingError, "id=321", "DIVIDE_BY_ZERO")
    project.old.execute("UPDATE orders SET customer = 5 WHERE id = 321")
    change(mapping, 'F.expr("customer + 0 * (1 div customer)").alias("customer_id")', SCALED)
    ends_equal(project)


@pytest.mark.slow
def test_a_mapping_that_fails_on_a_streamed_row(project: Project) -> None:
    mapping = project.config.parent / "mapping.py"
    change(mapping, SCALED, 'F.expr("customer + 0 * (1 div (items - 77))").alias("customer_id")')
    project.run_here()
    project.old.execute("UPDATE orders SET items = 77 WHERE id = 5")
    refused(project, MappingError, "id=5", "DIVIDE_BY_ZERO")
    change(mapping, 'F.expr("customer + 0 * (1 div (items - 77))").alias("customer_id")', SCALED)
    with pytest.raises(MappingError, match="mapping of a target was changed"):
        project.run_here()
    accepted = ("--accept-mapping", "purchase", "--reason", "it divided by nothing")
    assert project.command("run", "--plain", "--until", "caught-up", *accepted) == 0
    ends_equal(project)


@pytest.mark.slow
def test_a_mapping_with_a_duplicate_key(project: Project) -> None:
    mapping = project.config.parent / "mapping.py"
    key = 'F.col("id").alias("purchase_id")'
    change(mapping, key, 'F.expr("id - id % 2").alias("purchase_id")')
    refused(project, TargetError, "purchase", "two rows")
    change(mapping, 'F.expr("id - id % 2").alias("purchase_id")', key)
    ends_equal(project)


def test_a_mapping_with_another_key_than_the_table(project: Project) -> None:
    change(project.config.parent / "mapping.py", 'key="purchase_id"', 'key="customer_id"')
    refused(project, MappingError, "customer_id", "purchase_id")


def test_a_mapping_that_needs_a_grain(project: Project) -> None:
    change(project.config.parent / "mapping.py", "return orders.select(", "return orders.distinct().select(")
    refused(project, MappingError, "neither row-wise nor has it a grain")


def test_a_violated_constraint_names_the_row(project: Project) -> None:
    project.new.execute("ALTER TABLE purchase ADD CONSTRAINT few CHECK (item_count < 100)")
    project.old.execute("UPDATE orders SET items = 100 WHERE id = 44")
    refused(project, TargetError, "few", "44")
    project.old.execute("UPDATE orders SET items = 99 WHERE id = 44")
    project.new.execute("ALTER TABLE purchase DROP CONSTRAINT few")
    ends_equal(project)


def test_a_target_that_is_not_empty(project: Project) -> None:
    project.new.execute("INSERT INTO purchase VALUES (1, 1, 1, 'x', NULL, 1, 1, now(), true, 'web')")
    refused(project, PreflightError, "purchase")


@pytest.mark.slow
def test_a_table_cannot_join_later(project: Project) -> None:
    project.run_here()
    project.old.execute(
        "CREATE TABLE later (id bigint PRIMARY KEY)", "ALTER TABLE later REPLICA IDENTITY FULL"
    )
    project.new.execute("CREATE TABLE late (id bigint PRIMARY KEY)")
    mapping = project.config.parent / "mapping.py"
    mapping.write_text(
        mapping.read_text()
        + '\n\n@mapping.target("late", key="id")\ndef late(later: DataFrame) -> DataFrame:\n'
        '    """Rows of a table that came later."""\n    return later\n'
    )
    refused(project, MappingError, "later", "didn't capture from its start")


@pytest.mark.slow
def test_a_row_that_was_corrected_at_the_source_no_longer_stops_the_next_run(project: Project) -> None:
    """Its first version is in the event log already: the next run must read on before it applies that."""
    project.new.execute("ALTER TABLE purchase ADD CHECK (item_count < 100000)")
    project.run_here()
    for broken, mended in (("paid = 7", "paid = 1"), ("items = 200000", "items = 2")):
        project.old.execute(f"UPDATE orders SET {broken} WHERE id = 5")
        refused(project, MigratorError, "5")
        project.old.execute(f"UPDATE orders SET {mended} WHERE id = 5")
        ends_equal(project)
