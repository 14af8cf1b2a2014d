"""A target that is added to a begun migration, or taken out and put back: refused by name, or it ends equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import MappingError, TargetError
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ALWAYS = """
@mapping.target("busy", key="customer", grain="orders.customer")
def busy(orders):
    return orders.groupBy("customer").agg(F.count("*").alias("orders")).where("orders > 1")
"""
BUSY = 'orders.groupBy("customer").agg(F.count("*").alias("orders")).where("orders > 1")'
PLAIN = 'orders.select(F.col("id").alias("customer"), F.col("customer").alias("orders"))'
LATE = """
@mapping.target("late", key="id")
def late(orders):
    return orders.select("id", "customer")
"""
JOINED = """
@mapping.target("tally", key="customer", grain="orders.customer")
def tally(orders):
    return orders.groupBy("customer").agg(F.count("*").alias("orders"))
"""
MADE = {
    "late": "CREATE TABLE late (id bigint PRIMARY KEY, customer bigint)",
    "tally": "CREATE TABLE tally (customer bigint PRIMARY KEY, orders bigint)",
    "busy": "CREATE TABLE busy (customer bigint PRIMARY KEY, orders bigint)",
}
EXPECTED = {
    "late": "SELECT id, customer FROM orders",
    "tally": "SELECT customer, count(*) FROM orders GROUP BY customer",
    "busy": "SELECT customer, count(*) FROM orders GROUP BY customer HAVING count(*) > 1",
}


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, request: pytest.FixtureRequest, spark: SparkSession) -> Project:
    """A migration that has dumped everything, with one joined target."""
    create(scenario_database(old_pg), 60)
    old_pg.execute("UPDATE orders SET customer = id % 7")
    made = run_project.make(
        tmp_path / "project", old_pg, request.getfixturevalue(getattr(request, "param", "new_pg"))
    )
    made.new.execute(*MADE.values())
    mapped(made, ALWAYS)
    made.run_here()
    return made


def mapped(project: Project, *more: str) -> None:
    """The mapping has these targets, beside purchase."""
    file = project.config.parent / "mapping.py"
    file.write_text(file.read_text().partition("# -- more\n")[0] + "# -- more\n" + "".join(more))


def ends_equal(project: Project, *targets: str) -> None:
    project.run_here()
    assert project.differences() == []
    for target in targets:
        rows = set(map(tuple, project.old.query(EXPECTED[target])))
        assert rows
        assert set(map(tuple, project.new.query(f"SELECT * FROM {target}"))) == rows, target


def accepting(project: Project, target: str) -> None:
    """As `migrator run --accept-mapping` does it."""
    parts = wiring.parts(replace(configuration.load(project.config), accepted=(target,)))
    Migration(parts).run(Stopping(), caught_up(parts.catalog.position))


@pytest.mark.slow
@pytest.mark.parametrize(
    "project", ["new_pg", pytest.param("new_mysql", marks=pytest.mark.slow)], indirect=True
)
def test_a_late_target_gets_all_rows_once_old_ones_are_gone(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    mapped(project, ALWAYS, LATE)
    capsys.readouterr()
    assert project.command("check", "--value-seconds", "0") == 0
    assert "the next start reads all rows of" in capsys.readouterr().out
    process = project.process("run", "--until", "caught-up", crash_at="capture.requested:1")
    process.communicate(timeout=120)
    ends_equal(project, "late", "busy")
    mapped(project, ALWAYS)
    project.old.execute(
        "DELETE FROM orders WHERE id % 3 = 0", "UPDATE orders SET customer = 7 WHERE id % 3 = 1"
    )
    ends_equal(project, "busy")
    mapped(project, ALWAYS, LATE)
    for _ in range(
        2
    ):  # deleted rows are still there; whoever starts it again may not have read why it stopped
        with pytest.raises(MappingError, match="was added to the mapping, or put back") as caught:
            project.run_here()
        assert caught.value.where == "target table late"
        assert caught.value.remedy.startswith("empty the table (late); then start again")
    project.new.execute("DELETE FROM late")
    ends_equal(project, "late", "busy")


@pytest.mark.slow
def test_a_changed_target_gets_all_rows_anew_or_is_accepted(project: Project) -> None:
    mapped(project, ALWAYS, LATE.replace('"id", "customer"', '"id"'))
    project.command("dump", "start", "--table", "orders")
    project.run_here()
    mapped(project, ALWAYS, LATE)
    with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
        project.run_here()
    assert "migrator run --accept-mapping late --reason" in caught.value.remedy
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id = 1")
    accepting(project, "late")
    assert project.new.query("SELECT count(customer) FROM late") == [(1,)]
    project.run_here()  # from the first batch on it is as it always was
    mapped(project, JOINED, LATE, ALWAYS.replace(', grain="orders.customer"', "").replace(BUSY, PLAIN))
    with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
        project.run_here()
    assert caught.value.where == "target table busy"


FAILING = """
@mapping.target("late", key="id")
def late(orders):
    return orders.select("id", F.when(F.col("customer") < 100, F.col("customer")).otherwise(MADE).alias("customer"))
"""


@pytest.mark.slow
def test_a_mapping_that_fails_on_a_row_is_corrected_as_its_remedy_says(project: Project) -> None:
    """Rows applied so far are what the corrected one makes of them; the next one's aren't."""
    failing = FAILING.replace("MADE", "F.raise_error(F.lit('too many')).cast('long')")
    mapped(project, ALWAYS, failing)
    project.command("dump", "start", "--table", "orders")
    project.run_here()
    project.old.execute("UPDATE orders SET customer = 100 WHERE id = 1")
    with pytest.raises(MappingError, match="fails on a row") as caught:
        project.run_here()
    assert (
        "start with --accept-mapping and the target's name; else the next start says" in caught.value.remedy
    )
    mapped(project, ALWAYS, FAILING.replace("MADE", "F.col('customer')"))
    with pytest.raises(MappingError, match="mapping of a target was changed"):
        project.run_here()
    accepting(project, "late")
    ends_equal(project, "late", "busy")


@pytest.mark.parametrize(
    "project",
    [
        "new_pg",
        pytest.param("new_mysql", marks=pytest.mark.slow),
        pytest.param("new_maria", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_a_target_that_was_made_again_is_refused_or_filled_anew(project: Project) -> None:
    mapped(project, ALWAYS, JOINED, LATE)
    project.command("dump", "start", "--table", "orders")
    ends_equal(project, "late", "busy")
    for made_again in range(2):
        project.new.execute(
            "DROP TABLE late", "DROP TABLE tally", *(MADE[name] for name in ("late", "tally"))
        )
        project.old.execute(f"UPDATE orders SET customer = customer + 1 WHERE id = {made_again}")
        for _ in range(2):
            with pytest.raises(TargetError, match="isn't the one that its rows were applied to") as caught:
                project.run_here()
            assert caught.value.where == "target table late"
        asked = "migrator dump start --table orders; then empty the table (late); then start again"
        assert asked in caught.value.remedy
        project.command("dump", "start", "--table", "orders")
        project.new.execute("DELETE FROM late")
        ends_equal(project, "late", "tally", "busy")
    project.new.execute("ALTER TABLE late ADD more int", "ALTER TABLE tally ADD more int")
    project.run_here()  # the control: the same table, revised


SHORT = """
def short(text):
    return text[:LIMIT]

LIMIT = 3
KINDS = {"b", "a", "c"}

@mapping.target("late", key="id")
def late(orders):
    kind = F.udf(lambda number: short("abcd") in KINDS and str(number) or None)
    taken = F.coalesce(kind("customer").cast("long"), "customer")
    return orders.where("customer > 1").select("id", taken.alias("customer"))
"""
SAME = """
LIMIT, KINDS = 3, {"c", "b", "a"}

def short(word):
    \"""Cuts.\"""
    return word[:LIMIT]  # its first letters

@mapping.target("late", key="id")
def of_old_orders(orders):
    bought = orders.where(F.col("customer") > F.lit(1))
    taken = F.udf(lambda customer: short("abcd") in KINDS and str(customer) or None)(bought.customer)
    return bought.select(orders.id, F.coalesce(taken.cast("bigint"), bought["customer"]).alias("customer"))
"""


@pytest.mark.slow
def test_another_filter_or_function_is_another_mapping_and_another_text_is_not(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    mapped(project, ALWAYS, SHORT)
    project.command("dump", "start", "--table", "orders")
    project.run_here()
    mapped(project, ALWAYS, SAME)
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id = 1")
    project.run_here()
    for other, words in (
        (SHORT.replace("> 1", "> 2"), "a filter (a literal)"),
        (SHORT.replace("customer > 1", "items > 1"), "a filter"),  # which nothing read before
        (
            SHORT.replace("LIMIT = 3", "LIMIT = 2"),
            "column customer is computed otherwise (what a Python function does)",
        ),
        (SAME.replace('"c"', '"d"'), "column customer is computed otherwise (what a Python function does)"),
    ):
        mapped(project, ALWAYS, other)
        with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
            project.run_here()
        assert caught.value.where == "target table late"
        assert caught.value.cause.startswith(f"of late differ: {words}. ")
        capsys.readouterr()
        assert project.command("check", "--value-seconds", "0") == 2
        said = capsys.readouterr().out
        assert "refuses  mapping: target table late\n    the mapping of a target was changed" in said
        assert f"of late differ: {words}. " in said
    accepted = ("--accept-mapping", "late", "--reason", "nobody bought d")
    assert project.command("run", "--plain", "--until", "caught-up", *accepted) == 0
    capsys.readouterr()
    project.command("history")
    assert f": late: {words}: because nobody bought d" in capsys.readouterr().out
    assert project.command("check", "--value-seconds", "0") == 0
    project.run_here()
    mapped(project, ALWAYS, SHORT)
    with pytest.raises(MappingError, match="mapping of a target was changed"):
        project.run_here()
    mapped(project, ALWAYS.replace("> 1", "> 8"), SAME.replace('"c"', '"d"'))
    capsys.readouterr()
    assert project.command("check", "--value-seconds", "0") == 2
    assert "migrator remap busy --reason" in capsys.readouterr().out
    with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
        project.run_here()
    assert caught.value.where == "target table busy"
    assert "of busy differ: a filter (a literal)" in caught.value.cause
    assert project.command("remap", "busy", "--reason", "one more makes it busy") == 0
    assert "MB now: the target needs about as much again" in capsys.readouterr().out
    assert project.command("check", "--value-seconds", "0") == 0
    assert "the next start derives all rows anew of busy: a filter (a literal)" in capsys.readouterr().out
    more = "SELECT customer, count(*) FROM orders GROUP BY customer HAVING count(*) > 8"
    rows = set(map(tuple, project.old.query(more)))
    assert rows != set(map(tuple, project.new.query("SELECT * FROM busy")))
    project.old.execute("UPDATE orders SET items = items + 1 WHERE id = 1")
    project.run_here()
    assert set(map(tuple, project.new.query("SELECT * FROM busy"))) == rows
    capsys.readouterr()
    project.command("history")
    said = capsys.readouterr().out
    assert ": busy: because one more makes it busy" in said
    assert ": busy: a filter (a literal)" in said


@pytest.mark.slow
def test_a_joined_target_is_filled_from_the_mirror_when_it_joins_and_when_it_comes_back(
    project: Project,
) -> None:
    mapped(project, ALWAYS, JOINED)
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id = 1")
    ends_equal(project, "tally", "busy")
    mapped(project, ALWAYS)
    project.old.execute(
        "DELETE FROM orders WHERE id % 3 = 0", "UPDATE orders SET customer = 7 WHERE id % 3 = 1"
    )
    ends_equal(project, "busy")
    mapped(project, ALWAYS, JOINED)
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id = 2")
    ends_equal(project, "tally", "busy")


@pytest.mark.slow
@pytest.mark.parametrize(
    "project", ["new_pg", pytest.param("new_mysql", marks=pytest.mark.slow)], indirect=True
)
def test_a_table_that_nothing_joined_for_a_while_is_read_once_more(project: Project) -> None:
    mapped(project)
    project.old.execute("DELETE FROM orders WHERE id % 3 = 0")
    ends_equal(project)
    mapped(project, ALWAYS)
    project.new.execute("DELETE FROM busy")
    ends_equal(project, "busy")


@pytest.mark.slow
def test_without_the_rule_a_late_target_lacks_rows_and_nobody_is_told(project: Project) -> None:
    """Negative control, also of a table that is made again."""
    mapped(project, ALWAYS, LATE)
    project.new.execute("DROP TABLE busy", MADE["busy"])
    parts = replace(wiring.parts(configuration.load(project.config)), late=None)
    Migration(parts).run(Stopping(), caught_up(parts.catalog.position))
    assert project.new.query("SELECT * FROM late") == []
    assert project.new.query("SELECT * FROM busy") == []
