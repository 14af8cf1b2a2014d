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


def test_a_sample_alone_tells_less(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    """The control: the row is none of the first grains."""
    project.new.execute("ALTER TABLE referral ALTER referrer TYPE varchar(12)")
    project.old.execute(f"UPDATE customer SET name = '{LONG}' WHERE customer_id = 14")
    assert project.command("check", "--grain-rows", "1", "--value-seconds", "0") == 0
