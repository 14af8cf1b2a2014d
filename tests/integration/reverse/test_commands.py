"""``init --reverse`` and ``check --reverse`` on real servers: what is written, and what comes back of real rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.cli import cli
from migrator.errors import MigratorError
from tests.integration.cutover.two_way import TwoWay, made

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ENGINES = ["pg-pg", "maria-pg", "pg-maria", "maria-maria"]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> TwoWay:
    return made(request.param, request, tmp_path / "project")


def init(project: TwoWay) -> str:
    folder = project.config.parent
    (folder / "reverse.py").unlink(missing_ok=True)
    assert not cli.main(["init", "--reverse", str(folder)], standalone_mode=False)
    return (folder / "reverse.py").read_text()


def checked(project: TwoWay, capfd: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    capfd.readouterr()
    return project.command("check", "--reverse", *options), capfd.readouterr().out


def accept(project: TwoWay, *names: str) -> None:
    listed = ", ".join(f'"{name}"' for name in names)
    project.config.write_text(f"{project.config.read_text()}\n[back]\naccept_lossy = [{listed}]\n")


@pytest.mark.slow
@pytest.mark.parametrize("project", ENGINES, indirect=True)
def test_what_follows_is_written_clean_and_comes_back(
    project: TwoWay, capfd: pytest.CaptureFixture[str]
) -> None:
    text = init(project)
    assert "customer: from person, contact; not carried: note" in capfd.readouterr().out
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "reverse.py"]
    folder = project.config.parent  # here, dbmigrator would be a module of the same project
    assert subprocess.run(ruff, cwd=folder, check=False, capture_output=True).returncode == 0, text
    code, out = checked(project, capfd)
    assert code == 0, out
    assert "customer: all 20 rows there and back\n             exact: customer_id, name, email\n" in out
    assert (
        "orders: all 60 rows there and back\n             exact: order_id, customer_id, cents, paid\n" in out
    )
    assert "not carried: note: old rows keep their value, new ones get 'made new'" in out
    assert "not carried: origin: old rows keep their value, new ones get 'web'" in out
    assert project.command("explain", "--reverse") == 0
    assert "contact.person_id = person.person_id" in capfd.readouterr().out

    code, out = checked(project, capfd, "--rows", "15")
    assert code == 0, out
    assert "customer: 15 of its rows there and back" in out
    assert "orders: 15 of its rows there and back" in out
    project.old.execute("UPDATE orders SET paid = 7 WHERE order_id = 55")
    code, out = checked(project, capfd, "--rows", "15")
    assert code == 1, "rows from the end are tried as well"
    assert "7 came back as 0 (order_id=55)" in out

    with pytest.raises(MigratorError, match=r"reverse\.py is there already") as refused:
        cli.main(["init", "--reverse", str(project.config.parent)], standalone_mode=False)
    assert "`migrator check --reverse` says what it lacks" in str(refused.value)
    assert (project.config.parent / "reverse.py").read_text() == text


LOSSY_THERE = """
from pyspark.sql import functions as F
from transforms import Mapping
from transforms.columns import blank_to_null

mapping = Mapping()

@mapping.target("person", key="person_id")
def person(customer):
    return customer.select(F.col("customer_id").alias("person_id"), F.{name}("name").alias("full_name"))

@mapping.target("contact", key="person_id")
def contact(customer):
    return customer.where("customer_id <> 4").select(
        F.col("customer_id").alias("person_id"), blank_to_null("email").alias("email"))

@mapping.target("purchase", key="purchase_id")
def purchase(orders):
    return orders.where("order_id <> 9").select(
        F.col("order_id").alias("purchase_id"), F.col("customer_id").alias("person_id"),
        F.round(F.col("cents") / 100, 0).cast("decimal(12,2)").alias("amount"),
        (F.col("paid") != 0).alias("is_paid"))
"""
ROWS = (
    "UPDATE customer SET name = ' Ada ' WHERE customer_id = 1",
    "UPDATE customer SET name = 'ada' WHERE customer_id = 2",
    "UPDATE customer SET email = '' WHERE customer_id = 5",
    "UPDATE customer SET email = 'kept@example.org' WHERE customer_id = 4",
    "UPDATE orders SET paid = 7 WHERE order_id = 3",
)


@pytest.mark.slow
@pytest.mark.parametrize("project", ["pg-pg", "maria-maria"], indirect=True)
@pytest.mark.parametrize(
    ("name", "lost"),
    [("trim", "1 of 20 values come back otherwise: ' Ada ' came back as 'Ada' (customer_id=1)"),
     ("lower", "1 of 20 values come back otherwise: ' Ada ' came back as ' ada ' (customer_id=1)")],
)  # fmt: skip
def test_each_loss_is_named_and_refused_until_it_is_accepted(
    project: TwoWay, name: str, lost: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """On MariaDB the column's collation takes ``' ada'`` and ``' Ada'`` for one, and blanks at the end for none."""
    (project.config.parent / "mapping.py").write_text(LOSSY_THERE.replace("{name}", name))
    project.old.execute(*ROWS)
    code, out = checked(project, capfd)
    assert code == 1, out
    assert f"lossy: name: {lost}" in out
    assert "lossy: email: 2 of 20 values come back otherwise: " in out
    assert "'kept@example.org' came back as NULL (customer_id=4)" in out
    assert "'' came back as NULL (customer_id=5)" in out
    assert "lossy: rows: 1 row(s) don't come back: order_id=9" in out
    assert "lossy: cents: 59 of 59 values come back otherwise: 101 came back as 100 (order_id=1)" in out
    assert "lossy: paid: 1 of 59 values come back otherwise: 7 came back as 1 (order_id=3)" in out
    assert "or accept the loss by name: 'orders.cents' in [back] accept_lossy" in out
    losses = ["customer.name", "customer.email", "orders.cents", "orders.paid", "orders.*"]
    accept(project, *losses[:-1])
    code, out = checked(project, capfd)
    assert code == 1, "rows that don't come back are accepted by name as well"
    project.config.write_text(
        project.config.read_text().replace('"orders.paid"]', '"orders.paid", "orders.*"]')
    )
    code, out = checked(project, capfd)
    assert code == 0, out
    assert "(accepted)" in out


@pytest.mark.parametrize("project", ["pg-pg"], indirect=True)
def test_nothing_compared_is_unknown_and_a_column_that_nothing_fills_is_refused(
    project: TwoWay, capfd: pytest.CaptureFixture[str]
) -> None:
    project.old.execute("DELETE FROM orders")
    code, out = checked(project, capfd)
    assert code == 3, out
    assert "unknown  way back: orders: it has no rows" in out
    project.old.execute("ALTER TABLE customer ADD must int NOT NULL DEFAULT 3")
    assert checked(project, capfd)[0] == 3
    assert "not carried: must: old rows keep their value, new ones get 3" in checked(project, capfd)[1]
    project.old.execute("ALTER TABLE customer ALTER must DROP DEFAULT")
    code, out = checked(project, capfd)
    assert code == 2
    assert "it does not produce column 'must'" in out
    assert "the target's column is NOT NULL and has no default" in out


@pytest.mark.parametrize("project", ["pg-pg"], indirect=True)
def test_rows_that_are_no_old_ones_are_told(project: TwoWay, capfd: pytest.CaptureFixture[str]) -> None:
    file = project.config.parent / "reverse.py"
    text = file.read_text()
    assert 'F.col("purchase_id").alias("order_id")' in text
    file.write_text(text.replace('F.col("purchase_id")', '(F.col("purchase_id") + 1)'))
    code, out = checked(project, capfd)
    assert code == 1, out
    assert "1 row(s) don't come back: order_id=1" in out
    assert "1 row(s) come back that are no old ones: order_id=61" in out
    file.write_text(text.replace('(F.col("amount") * 100).cast("int")', 'F.raise_error("no").cast("int")'))
    code, out = checked(project, capfd)
    assert code == 2, out
    assert "its reverse function fails on mapped rows" in out
    assert "customer: all 20 rows there and back" in out, "the other table is tried all the same"


def test_reverse_takes_no_servers(tmp_path: Path) -> None:
    with pytest.raises(MigratorError, match="--reverse takes no other option"):
        cli.main(["init", "--reverse", "--name", "x", str(tmp_path)], standalone_mode=False)
    with pytest.raises(MigratorError, match="can't be read"):
        cli.main(["init", "--reverse", str(tmp_path)], standalone_mode=False)
