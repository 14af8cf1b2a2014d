"""Joined targets batch by batch: after every commit they are what plain SQL makes of the old tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.targets.shared.mirror.reach_sql import ReachSql
from migrator.config import project as configuration
from migrator.errors import MappingError
from migrator.run.apply.joined_values import JoinedValues
from migrator.wiring import target as wiring_target
from tests.integration import shop
from tests.integration.joined.joined_bench import JoinedBench
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ORDERS = 60


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    shop.create(old_pg, ORDERS)
    return shop.make(tmp_path / "project", old_pg, new_pg)


@pytest.fixture
def bench(project: Project, tmp_path: Path, spark: SparkSession) -> Iterator[JoinedBench]:
    made = JoinedBench(project, tmp_path).begin()
    yield made
    made.close()


@pytest.fixture
def few(project: Project, tmp_path: Path, spark: SparkSession) -> Iterator[JoinedBench]:
    """Some of the targets: by plain columns, by computed ones, and of a table linked to itself."""
    made = JoinedBench(project, tmp_path, only=("order_summary", "sales", "referral")).begin()
    yield made
    made.close()


def transact(project: Project, statements: list[str]) -> None:
    connection = project.old.connect()
    with connection.transaction():
        for statement in statements:
            connection.execute(statement)
    connection.close()


def filled(bench: JoinedBench) -> None:
    """Two batches with a transaction between that changes what the first has brought."""
    bench.dump("category", "product", "customer")
    transact(bench.project, next(shop.changes(99, ORDERS)))
    bench.follow()
    assert bench.project.new.query("SELECT count(*) FROM order_summary") == [(0,)], (
        "not all tables are dumped"
    )
    bench.dump("orders", "order_line")


@pytest.mark.slow
def test_every_committed_state_is_the_mapping_of_the_source(bench: JoinedBench) -> None:
    filled(bench)
    assert shop.differences(bench.project) == {}
    transactions = shop.changes(1, ORDERS)
    for number in (1, 4, 12):
        statements = [one for _ in range(number) for one in next(transactions)]
        transact(bench.project, statements)
        bench.follow()
        assert shop.differences(bench.project) == {}, statements


@pytest.mark.slow
def test_a_change_that_reaches_more_grains_than_are_mapped_at_a_time(
    project: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """Slice by slice in one transaction; keys of ``circle`` move from the grain of one slice to that of another."""
    some = ("circle", "order_summary", "sales", "namesake")
    bench = JoinedBench(project, tmp_path, slice_grains=10, only=some).begin()
    filled(bench)
    assert bench.fill() > 1
    assert shop.differences(project, some) == {}
    transact(
        project,
        [
            "UPDATE customer SET referrer_id = customer_id % 9 + 1",
            "UPDATE product SET price = price + 1, category_id = category_id % 7 + 1 WHERE product_id < 9",
            "UPDATE customer SET name = 'one of many' WHERE customer_id % 3 = 0",
        ],
    )
    bench.follow()
    assert shop.differences(project, some) == {}
    bench.close()


@pytest.mark.slow
def test_undone_at_any_point_it_is_done_again(few: JoinedBench) -> None:
    """In the batch that fills, and in one that changes: what was undone left nothing behind."""
    few.dump("category", "product", "customer")
    for point in ("target.mirrored", "joined.mapped", "joined.filled"):
        stop_at(few, point)
        with pytest.raises(Stopped):
            few.dump("orders", "order_line")
        started_again(few)
        assert few.project.new.query("SELECT count(*) FROM order_summary") == [(0,)]
    few.apply_again(few.last)
    assert shop.differences(few.project, few.only) == {}
    for point in ("target.mirrored", "target.merged"):
        transact(few.project, ["UPDATE order_line SET quantity = quantity + 1 WHERE order_id < 9"])
        stop_at(few, point)
        with pytest.raises(Stopped):
            few.follow()
        started_again(few)
        few.apply_again(few.last)
        assert shop.differences(few.project, few.only) == {}


class Stopped(Exception):
    """What a step raises that acts like a crash."""


def stop_at(few: JoinedBench, point: str) -> None:
    def step(name: str) -> None:
        if name == point:
            raise Stopped

    few.step = step


def started_again(few: JoinedBench) -> None:
    few.close()
    few.step = lambda name: None
    few.begin(few.epoch + 1)


def test_a_changed_mapping_is_derived_anew_from_the_mirror(few: JoinedBench) -> None:
    filled(few)
    few.close()
    few.project.new.execute(  # as another mapping would have made them, and one row too many
        "UPDATE order_summary SET products = 'nothing' WHERE order_id > 9",
        "DELETE FROM order_summary WHERE order_id = 3",
        "INSERT INTO order_summary VALUES (999999, 'nobody', 0, 0, NULL)",
    )
    assert wiring_target.table_bytes(configuration.load(few.project.config), "order_summary") >= 8192
    assert few.project.command("remap", "order_summary") == 0
    with pytest.raises(MappingError, match="no next function of target table 'label' is declared"):
        few.project.command("remap", "label")
    few.begin(2)
    transact(few.project, next(shop.changes(5, ORDERS)))
    few.follow()
    assert shop.differences(few.project, few.only) == {}


@pytest.mark.slow
def test_the_comparison_notices_when_the_state_before_is_not_followed(
    few: JoinedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: an order that a line has left, and one that it was deleted from, stay as they were."""
    filled(few)
    trace = ReachSql.trace

    def only_after(self: ReachSql) -> Iterator[str]:
        before = [table.before for table in self._tables.values() if table.before]
        return (text for text in trace(self) if not any(re.search(rf"{name}\b", text) for name in before))

    monkeypatch.setattr(ReachSql, "trace", only_after)
    transact(few.project, ["DELETE FROM order_line WHERE order_id = 5 AND line_no = 1"])
    few.follow()
    assert "order_summary" in shop.differences(few.project, few.only)


def test_the_comparison_notices_when_a_computed_value_stays_behind(
    project: Project, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of links by computed values, and a mirror that gets its values later than its rows."""
    some = ("band", "namesake", "fan")
    bench = JoinedBench(project, tmp_path, only=some).begin()
    monkeypatch.setattr(JoinedValues, "added", lambda self, batch: tuple(batch))
    bench.dump(*shop.TABLES)
    assert shop.differences(project, some) == {}, "filling computes the values of all rows"
    transact(project, ["UPDATE product SET price = 1 WHERE product_id = 40"])
    bench.follow()
    assert list(shop.differences(project, some)) == ["band"], "those in whose band it is now weren't found"
    bench.close()
