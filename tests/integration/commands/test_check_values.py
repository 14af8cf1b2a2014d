"""``migrator check`` names values that the new schema can't hold, and its remedies, followed, mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

LONG = "person with a long name"


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession) -> Project:
    shop.create(old_pg, 6)
    return shop.make(tmp_path / "project", old_pg, new_pg, ("label", "referral"))


@pytest.mark.slow
def test_values_are_named_and_the_remedies_mend_it(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that the sample has, by a condition of the table; one that the source is asked for, in a joined
    mapping."""

    def check(*arguments: str) -> tuple[int, str]:
        capfd.readouterr()
        return project.command("check", *arguments), capfd.readouterr().out

    assert check()[0] == 0
    project.new.execute(
        "ALTER TABLE referral ALTER referrer TYPE varchar(12)",
        "ALTER TABLE label ADD CONSTRAINT named CHECK (name <> 'group 3')",
    )
    project.old.execute(f"UPDATE customer SET name = '{LONG}' WHERE customer_id = 14")
    code, said = check("--grain-rows", "1")
    assert code == 2
    assert "refuses  value: public.label.name" in said
    assert "category_id=3, column name, value 'group 3' (text)" in said
    assert 'violates check constraint "named"' in said
    assert "refuses  value: public.referral.referrer" in said
    assert f"customer_id=28, column referrer, value '{LONG}' (character varying(12))" in said
    assert "2 refusal(s), 0 warning(s)" in said
    assert project.new.query("SELECT count(*) FROM label") == [(0,)]
    project.new.execute(
        "ALTER TABLE referral ALTER referrer TYPE varchar(40)", "ALTER TABLE label DROP CONSTRAINT named"
    )
    assert check("--grain-rows", "1")[0] == 0


def test_what_a_plain_insert_takes_is_not_named_and_the_row_at_fault_is(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """Columns that the mapping doesn't write have defaults; a condition may be about several columns, or NULL."""
    project.new.execute(
        "CREATE DOMAIN filled AS text NOT NULL",
        "ALTER TABLE label ADD status text DEFAULT 'new' CHECK (status IS NOT NULL)",
        "ALTER TABLE label ADD kind filled DEFAULT lower('X'), ADD stamp timestamptz NOT NULL DEFAULT now()",
        "ALTER TABLE label ADD rank int NOT NULL DEFAULT 0, ALTER name SET DEFAULT 'group 3'",
        "ALTER TABLE label ADD above int GENERATED ALWAYS AS (rank + 1) STORED NOT NULL",
        "ALTER TABLE label ADD CHECK (stamp > '2020-01-01' AND name <> kind), ADD CHECK (name IS NOT NULL)",
        "INSERT INTO label (category_id, name) VALUES (1, 'group 1')",
        "DELETE FROM label",
    )
    assert project.command("check", "--grain-rows", "1") == 0
    project.new.execute("ALTER TABLE label ADD CONSTRAINT named CHECK (name <> 'group 3' AND rank = 0)")
    capfd.readouterr()
    assert project.command("check", "--grain-rows", "1") == 2
    assert "category_id=3, column name, value 'group 3' (text)" in capfd.readouterr().out


def test_a_function_that_finds_nothing_is_no_bad_value(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.new.execute(
        "CREATE TABLE code (name text)",
        "CREATE FUNCTION fine(text) RETURNS boolean LANGUAGE sql AS"
        " 'SELECT NOT EXISTS (SELECT FROM code WHERE code.name = $1)'",
        "ALTER TABLE label ADD CHECK (fine(name))",
    )
    capfd.readouterr()
    assert project.command("check", "--grain-rows", "1") == 2
    said = capfd.readouterr().out
    assert "refuses  function: public.label" in said
    assert "value: " not in said
    project.new.execute(said.rpartition("remedy: ")[2].partition(" (or ")[0])
    assert project.command("check", "--grain-rows", "1") == 0


def test_a_row_that_no_partition_takes_is_named(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    project.new.execute(
        "DROP TABLE label",
        "CREATE TABLE label (category_id int PRIMARY KEY, name text NOT NULL) PARTITION BY RANGE (category_id)",
        "CREATE TABLE label_low PARTITION OF label FOR VALUES FROM (0) TO (5)",
    )
    capfd.readouterr()
    assert project.command("check", "--grain-rows", "1") == 2
    said = capfd.readouterr().out
    assert "category_id=5" in said, said
    assert "no_partition_for_the_row" in said
    project.new.execute("CREATE TABLE label_rest PARTITION OF label DEFAULT")
    assert project.command("check", "--grain-rows", "1") == 0


def test_a_sample_alone_tells_less(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    """The control: the row is none of the first grains."""
    project.new.execute("ALTER TABLE referral ALTER referrer TYPE varchar(12)")
    project.old.execute(f"UPDATE customer SET name = '{LONG}' WHERE customer_id = 14")
    assert project.command("check", "--grain-rows", "1", "--value-seconds", "0") == 0
