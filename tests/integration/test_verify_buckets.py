"""The judge of rows whose grain no server can look up: hot ones are looked at by the rows that a sweep saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.grain_project import BinlogProject, GrainProject
from tests.integration.test_verify_grain import BINLOG_OLD, views
from tests.servers import Database
from verify import rounds
from verify.bucket_look import BucketLook
from verify.chunk_reader import Bracket, Part
from verify.mysql_tables import MySQLSourceTables
from verify.postgres_tables import PostgresSourceTables
from verify.result import Verdict
from verify.table_reads import TableReads

__all__ = ["views"]

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 30
"""In a chunk."""
LETTERS = 12
NEW = """
CREATE TABLE initial (letter text PRIMARY KEY, customers bigint, paid numeric(12,2));
CREATE TABLE circle (letter text PRIMARY KEY, neighbours bigint, paid numeric(12,2));
CREATE TABLE namesake (letter text PRIMARY KEY, customers bigint, staff bigint);
CREATE TABLE tier (city_id int PRIMARY KEY, friends bigint);
"""
PAID = (
    "SELECT left(name, 1) AS letter, sum(amount) AS paid"
    " FROM customer LEFT JOIN payment ON customer_id = id GROUP BY 1"
)
MADE = {
    "initial": "SELECT left(name, 1) AS letter, count(DISTINCT id) AS customers, sum(amount) AS paid"
    " FROM customer LEFT JOIN payment ON customer_id = id GROUP BY 1",
    "circle": "SELECT letter, neighbours, paid FROM (SELECT left(c.name, 1) AS letter,"
    " count(DISTINCT n.id) AS neighbours FROM customer c LEFT JOIN customer n ON n.city_id = c.city_id"
    f" GROUP BY 1) a JOIN ({PAID}) b USING (letter)",
    "namesake": "SELECT left(c.name, 1) AS letter, count(DISTINCT id) AS customers, count(DISTINCT code) AS staff"
    " FROM customer c LEFT JOIN staff s ON left(s.name, 1) = left(c.name, 1) GROUP BY 1",
    "tier": "SELECT c.city_id, count(DISTINCT f.id) AS friends FROM customer c LEFT JOIN customer f"
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
    "circle", key="letter", grain=lambda customer: [letter(customer)], roles={"neighbour": "customer"},
    links=["payment.customer_id = customer.id", "neighbour.city_id = customer.city_id"],
)
def circle(customer: DataFrame, payment: DataFrame) -> DataFrame:
    near = customer.select(F.col("id").alias("near"), "city_id")
    known = customer.join(near, "city_id", "left").groupBy(letter(customer))
    return known.agg(F.countDistinct("near").alias("neighbours")).join(
        paid(customer, payment).drop("customers"), "letter"
    )


@mapping.target(
    "namesake", key="letter", grain="customer.initial", links=["staff.initial = customer.initial"],
    values={"customer.initial": letter, "staff.initial": letter},
)
def namesake(customer: DataFrame, staff: DataFrame) -> DataFrame:
    rows = customer.select("id", letter(customer)).join(staff.select("code", letter(staff)), "letter", "left")
    return rows.groupBy("letter").agg(
        F.countDistinct("id").alias("customers"), F.countDistinct("code").alias("staff")
    )


@mapping.target(
    "tier", key="city_id", grain="customer.city_id", roles={"friend": "customer"},
    links=["friend.initial = customer.initial"], values={"customer.initial": letter},
)
def tier(customer: DataFrame) -> DataFrame:
    friends = customer.select(F.col("id").alias("friend"), letter(customer))
    rows = customer.where("city_id IS NOT NULL").select("city_id", letter(customer)).join(friends, "letter", "left")
    return rows.groupBy("city_id").agg(F.countDistinct("friend").alias("friends"))
"""
LETTERED = (
    f"UPDATE customer SET name = concat(chr(97 + CAST(id AS int) % {LETTERS}), ' name')",
    f"UPDATE staff SET name = concat(chr(97 + CAST(substring(code, 6) AS int) % {LETTERS}), ' name')",
)
TURNED = "concat(CASE WHEN name LIKE 'c%' THEN 'd' ELSE 'c' END, ' name')"
HOT = (
    f"UPDATE customer SET name = {TURNED} WHERE id IN (2, 3, 14)",
    "UPDATE customer SET city_id = (city_id + 1) % 4 + 1 WHERE id = 15",
    "UPDATE payment SET amount = amount + 1 WHERE customer_id IN (2, 3, 14)",
    f"UPDATE staff SET name = {TURNED} WHERE code = 'code 2'",
)
"""Moves rows between two grains, and changes what is linked to them, in one transaction."""


class BucketProject(GrainProject):
    """Tables whose grains are computed, linked by computed values, or drag in each other's rows."""

    new_tables, queries, mapping_text = NEW, MADE, MAPPING

    def prepare(self) -> None:
        super().prepare()
        self.old.execute(*LETTERED)

    def write(self, fault: Sequence[str] = ()) -> None:
        """A hot transaction, brought over at once."""
        with self.old.connect(autocommit=False) as old, old.cursor() as cursor:
            for statement in HOT:
                cursor.execute(statement)
            old.commit()
        self.apply(*MADE, fault=fault)


class BucketBinlogProject(BinlogProject, BucketProject):
    """The same on MySQL or MariaDB."""

    new_tables, queries, mapping_text = NEW, MADE, MAPPING

    def prepare(self) -> None:
        BinlogProject.prepare(self)
        self.old.execute(*(each.replace("chr(", "char(").replace("AS int", "AS signed") for each in LETTERED))


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
) -> list[str]:
    """Writes after the first chunk of each table that a sweep reads; gives the list of these tables."""
    seen: list[str] = []
    read = tables.read

    def writing(self: PostgresSourceTables, parts: Sequence[Part]) -> tuple[Bracket, int]:
        found = read(self, parts)
        if parts and parts[0].path.name == "0.parquet" and "swept" in str(parts[0].path):
            seen.append(parts[0].table)
            write()
        return found

    monkeypatch.setattr(tables, "read", writing)
    return seen


def test_what_is_written_in_every_sweep_settles(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch, views: list[dict[str, int]]
) -> None:
    swept = hot_sweeps(monkeypatch, project.write)
    result = project.verify(ROWS, rounds=4)
    assert "customer" in swept
    assert (result.verdict, project.found()) == (Verdict.EQUAL, set())
    assert all(table.counts.set_aside == 0 for table in result.tables)
    assert all(table.method.startswith("chunk by chunk") for table in result.tables)
    assert max(view.get("public.customer", 0) for view in views) < 60, "only what belongs to hot grains"


def test_without_a_closer_look_it_does_not(project: BucketProject, monkeypatch: pytest.MonkeyPatch) -> None:
    hot_sweeps(monkeypatch, project.write)
    monkeypatch.setattr(TableReads, "look", lambda *_: None)
    result = project.verify(ROWS, rounds=4)
    assert project.found() == set()
    assert all(table.counts.set_aside for table in result.tables)


def test_a_hot_row_that_is_wrong_is_never_equal(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its target row lacks one payment, each time; another row is wrong and isn't written to."""
    fault = [
        "UPDATE initial SET paid = paid - 1 WHERE letter = 'c'",
        "UPDATE circle SET neighbours = neighbours - 1 WHERE letter = 'd'",
        "UPDATE namesake SET staff = staff + 1 WHERE letter = 'c'",
        "UPDATE initial SET customers = customers + 1 WHERE letter = 'h'",
    ]
    project.apply(*MADE, fault=fault)
    hot_sweeps(monkeypatch, lambda: project.write(fault))
    result = project.verify(ROWS, ["initial", "circle", "namesake"], rounds=5)
    counts = {table.target: table.counts for table in result.tables}
    assert project.found() == {("initial", "different", "h")}
    assert {name: each.equal for name, each in counts.items()} == {
        "initial": LETTERS - 2,
        "circle": LETTERS - 1,
        "namesake": LETTERS - 1,
    }
    assert all(each.set_aside == 1 for each in counts.values())


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
    assert project.verify(ROWS, ["initial", "circle"], rounds=3).verdict is Verdict.UNKNOWN


def test_a_grain_larger_than_a_chunk_stays_open(
    project: BucketProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot_sweeps(monkeypatch, project.write)
    project.old.execute("INSERT INTO customer SELECT g, 'c many', 1 FROM generate_series(2000, 2000 + 30) g")
    project.apply(*MADE)
    result = project.verify(ROWS, ["initial"], rounds=3)
    (table,) = result.tables
    assert (table.verdict, project.found()) == (Verdict.UNKNOWN, set())
    assert "--whole" in table.reason


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
    result = project.verify(ROWS, rounds=4)
    assert (result.verdict, project.found()) == (Verdict.EQUAL, set())
