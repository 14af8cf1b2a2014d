"""The judge of rows whose grain no server can look up: hot ones are looked at by the rows that a sweep saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.verify.grains.grain_project import BinlogProject, GrainProject
from tests.integration.verify.grains.test_verify_grain import BINLOG_OLD, views
from tests.servers import Database
from verify.readers.mysql.tables import MySQLSourceTables
from verify.readers.ports import Bracket, Part
from verify.readers.postgres.tables import PostgresSourceTables
from verify.tables.rounds import progress as rounds
from verify.tables.rounds.table_reads import TableReads
from verify.tables.sweeps.bucket_look import BucketLook
from verify.verdict import Verdict

__all__ = ["views"]

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 100
"""In a chunk."""
LETTERS = 24
NEW = """
CREATE TABLE initial (letter text PRIMARY KEY, customers bigint, paid numeric(12,2));
CREATE TABLE circle (letter text PRIMARY KEY, guides bigint, paid numeric(12,2));
CREATE TABLE namesake (letter text PRIMARY KEY, customer text, staff text);
CREATE TABLE friends (city_id int PRIMARY KEY, friend text);
"""
PAID = (
    "SELECT left(name, 1) AS letter, sum(amount) AS paid"
    " FROM customer LEFT JOIN payment ON customer_id = id GROUP BY 1"
)
MADE = {
    "initial": "SELECT left(name, 1) AS letter, count(DISTINCT id) AS customers, sum(amount) AS paid"
    " FROM customer LEFT JOIN payment ON customer_id = id GROUP BY 1",
    "circle": "SELECT letter, guides, paid FROM (SELECT left(c.name, 1) AS letter,"
    " count(DISTINCT n.id) AS guides FROM customer c LEFT JOIN customer n ON n.id = c.city_id"
    f" GROUP BY 1) a JOIN ({PAID}) b USING (letter)",
    "namesake": "SELECT left(c.name, 1) AS letter, min(c.name) AS customer, min(s.name) AS staff"
    " FROM customer c LEFT JOIN staff s ON left(s.name, 1) = left(c.name, 1) GROUP BY 1",
    "friends": "SELECT c.city_id, min(f.name) AS friend FROM customer c LEFT JOIN customer f"
    " ON left(f.name, 1) = left(c.name, 1) WHERE c.city_id IS NOT NULL GROUP BY 1",
}
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping

mapping = Mapping()


def letter(rows):
    return F.substring(rows["name"], 1, 1).alias("letter")


def paid(customer, payment):
    rows = customer.join(payment, payment.customer_id == customer.id, "left")
    return rows.groupBy(letter(customer)).agg(
        F.sum("amount").cast("decimal(12,2)").alias("paid"), F.countDistinct(customer.id).alias("customers")
    )


@mapping.target("initial", key="letter", grain=lambda customer: [letter(customer)])
def initial(customer: DataFrame, payment: DataFrame) -> DataFrame:
    return paid(customer, payment)


@mapping.target(
    "circle", key="letter", grain=lambda customer: [letter(customer)], roles={"guide": "customer"},
    links=["payment.customer_id = customer.id", "guide.id = customer.city_id"],
)
def circle(customer: DataFrame, payment: DataFrame) -> DataFrame:
    guides = customer.select(F.col("id").alias("guide"))
    known = customer.join(guides, F.col("guide") == customer.city_id, "left").groupBy(letter(customer))
    return known.agg(F.countDistinct("guide").alias("guides")).join(
        paid(customer, payment).drop("customers"), "letter"
    )


@mapping.target(
    "namesake", key="letter", grain="customer.initial", links=["staff.initial = customer.initial"],
    values={"customer.initial": letter, "staff.initial": letter},
)
def namesake(customer: DataFrame, staff: DataFrame) -> DataFrame:
    names = staff.select(F.col("name").alias("staff"), letter(staff))
    rows = customer.select("name", letter(customer)).join(names, "letter", "left")
    return rows.groupBy("letter").agg(F.min("name").alias("customer"), F.min("staff").alias("staff"))


@mapping.target(
    "friends", key="city_id", grain="customer.city_id", roles={"friend": "customer"},
    links=["friend.initial = customer.initial"], values={"customer.initial": letter},
)
def friends(customer: DataFrame) -> DataFrame:
    others = customer.select(F.col("name").alias("friend"), letter(customer))
    rows = customer.where("city_id IS NOT NULL").select("city_id", letter(customer)).join(others, "letter", "left")
    return rows.groupBy("city_id").agg(F.min("friend").alias("friend"))
"""
LETTERED = (
    "UPDATE customer SET name = concat(chr(97 + CAST(id AS int) % 12), ' 0000')",
    "UPDATE staff SET name = concat(chr(97 + CAST(substring(code, 6) AS int) % 12), ' 0000')",
)
QUIET = ", ".join(f"({n}, '{chr(109 + n % 12)} name', NULL)" for n in range(61, 141))
"""More customers, of other letters."""
MOVED = "concat(CASE WHEN name LIKE 'c%' THEN 'd' ELSE 'c' END, ' name')"
MOVES = (
    f"UPDATE customer SET name = {MOVED} WHERE id IN (2, 3, 14)",
    "UPDATE payment SET amount = amount + 1 WHERE customer_id IN (2, 3, 14)",
)
"""Rows change their grain, and what is linked to them changes, in one transaction."""


class BucketProject(GrainProject):
    """Tables whose grains are computed, linked by computed values, or drag in each other's rows."""

    new_tables, queries, mapping_text = NEW, MADE, MAPPING

    def prepare(self) -> None:
        super().prepare()
        self.more()

    def more(self) -> None:
        """Names that tell their letter, and customers that nothing is written to."""
        self.old.execute(*LETTERED, f"INSERT INTO customer VALUES {QUIET}")
        self.writes = 0

    def write(self, *fault: str, statements: Sequence[str] = ()) -> None:
        """A hot transaction on the rows of the letter c, brought over at once."""
        self.writes += 1
        name = f"concat(left(name, 2), '{self.writes:04}') WHERE name LIKE 'c%'"
        hot = (
            f"UPDATE customer SET name = {name}",
            f"UPDATE staff SET name = {name}",
            "UPDATE payment SET amount = amount + 1 WHERE customer_id IN (2, 14, 26, 38)",
        )
        with self.old.connect(autocommit=False) as old, old.cursor() as cursor:
            for statement in statements or hot:
                cursor.execute(statement)
            old.commit()
        self.apply(*MADE, fault=fault)

    def move(self) -> None:
        """A transaction in which rows change their grain."""
        self.write(statements=MOVES)


class BucketBinlogProject(BinlogProject, BucketProject):
    """The same on MySQL or MariaDB."""

    new_tables, queries, mapping_text = NEW, MADE, MAPPING

    def prepare(self) -> None:
        BinlogProject.prepare(self)
        self.more()

    def more(self) -> None:
        lettered = (each.replace("chr(", "char(").replace("AS int", "AS signed") for each in LETTERED)
        self.old.execute(*lettered, f"INSERT INTO customer VALUES {QUIET}")
        self.writes = 0


@pytest.fixture
def project(
    old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> BucketProject:
    monkeypatch.setattr(rounds, "STEADY_ROUNDS", 3)  # nothing is flipped to and fro here
    return BucketProject(old_pg, new_pg, spark, tmp_path)


def hot_sweeps(
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[], None],
    tables: type[PostgresSourceTables | MySQLSourceTables] = PostgresSourceTables,
    after: Sequence[str] = ("customer", "payment", "staff"),
) -> None:
    """Writes after the first chunk of some tables, in each sweep."""
    read = tables.read

    def writing(self: Any, parts: Sequence[Part]) -> tuple[Bracket, int]:
        found = read(self, parts)
        path = parts[0].path if parts else Path()
        if path.name == "0.parquet" and "swept" in str(path) and parts[0].table in after:
            write()
        return found

    monkeypatch.setattr(tables, "read", writing)


@pytest.mark.slow
def test_what_is_written_in_every_sweep_settles(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch, views: list[dict[str, int]]
) -> None:
    hot_sweeps(monkeypatch, project.write)
    result = project.verify(ROWS, rounds=3)
    assert project.writes
    assert (result.verdict, project.found()) == (Verdict.EQUAL, set())
    assert all(table.method.startswith("chunk by chunk") for table in result.tables)
    assert max(sum(view.values()) for view in views) <= ROWS


@pytest.mark.slow
def test_rows_that_change_their_grain_in_every_sweep_settle(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot_sweeps(monkeypatch, project.move, after=["customer"])
    result = project.verify(ROWS, ["initial", "circle"], rounds=3)
    assert project.writes
    assert (result.verdict, project.found()) == (Verdict.EQUAL, set())


@pytest.mark.slow
def test_without_a_closer_look_nothing_hot_settles(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot_sweeps(monkeypatch, project.write)
    monkeypatch.setattr(TableReads, "look", lambda *_: None)
    result = project.verify(ROWS, rounds=3)
    assert project.found() == set()
    assert all(table.counts.set_aside for table in result.tables)


@pytest.mark.slow
def test_a_hot_row_that_is_wrong_is_never_equal(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time it is brought over it lacks something; another row is wrong and isn't written to."""
    faults = [
        "UPDATE initial SET paid = paid - 1 WHERE letter = 'c'",
        "UPDATE circle SET guides = guides - 1 WHERE letter = 'c'",
        "UPDATE namesake SET staff = 'c 0000' WHERE letter = 'c'",
        "UPDATE initial SET customers = customers + 1 WHERE letter = 'h'",
    ]
    project.write(*faults)
    hot_sweeps(monkeypatch, lambda: project.write(*faults))
    result = project.verify(ROWS, ["initial", "circle", "namesake"], rounds=rounds.STEADY_ROUNDS + 2)
    counts = {table.target: table.counts for table in result.tables}
    assert project.found() == {("initial", "different", "h")}
    assert {name: each.equal for name, each in counts.items()} == {
        "initial": LETTERS - 2,
        "circle": LETTERS - 1,
        "namesake": LETTERS - 1,
    }
    assert all(each.set_aside == 1 for each in counts.values())


@pytest.mark.slow
def test_a_row_that_comes_after_the_sweep_leaves_its_grain_open_for_the_next(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot_sweeps(monkeypatch, project.write)
    read, come = BucketLook._read, iter((7, 19))

    def late(self: BucketLook, *given: object) -> object:
        number = next(come, None)
        if number is not None:
            project.old.execute(f"UPDATE customer SET name = 'c late' WHERE id = {number}")
            project.apply(*MADE)
        return read(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(BucketLook, "_read", late)
    result = project.verify(ROWS, ["initial"], rounds=8)
    assert next(come, None) is None
    assert (result.verdict, project.found()) == (Verdict.EQUAL, set())
    assert len(result.rounds) > 1


@pytest.mark.slow
def test_rows_with_growing_keys_are_seen_though_they_come_after_the_sweep(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot_sweeps(monkeypatch, project.write)
    read, come = BucketLook._read, iter(range(1000, 1100))

    def late(self: BucketLook, *given: object) -> object:
        project.old.execute(f"INSERT INTO customer VALUES ({next(come)}, 'c late', 1)")
        project.apply(*MADE)
        return read(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(BucketLook, "_read", late)
    assert project.verify(ROWS, ["initial", "circle"], rounds=3).verdict is Verdict.EQUAL
    assert next(come) > 1000
    monkeypatch.setattr(BucketLook, "_new_rows", lambda *_: [])
    assert project.verify(ROWS, ["initial", "circle"], rounds=2).verdict is Verdict.UNKNOWN


@pytest.mark.slow
def test_a_grain_larger_than_a_chunk_stays_open(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch, views: list[dict[str, int]]
) -> None:
    project.old.execute(
        "INSERT INTO customer SELECT g, 'c many', NULL FROM generate_series(2000, 2000 + 100) g"
    )
    project.apply(*MADE)
    hot_sweeps(monkeypatch, project.write)
    result = project.verify(ROWS, ["initial"], rounds=3)
    (table,) = result.tables
    assert (table.verdict, project.found()) == (Verdict.UNKNOWN, set())
    assert "--whole" in table.reason
    assert max(sum(view.values()) for view in views) <= ROWS


@pytest.mark.slow
def test_from_a_binlog_source(
    old_binlog: Database,
    new_pg: Database,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old_binlog.execute(*BINLOG_OLD.split(";"))
    project = BucketBinlogProject(old_binlog, new_pg, spark, tmp_path)
    hot_sweeps(monkeypatch, project.write, MySQLSourceTables)
    result = project.verify(ROWS, rounds=3)
    assert project.writes
    assert (result.verdict, project.found()) == (Verdict.EQUAL, set())
