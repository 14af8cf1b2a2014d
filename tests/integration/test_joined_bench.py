"""Joined targets batch by batch: after every commit they are what plain SQL makes of the old tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.adapters.target_postgres.mirror_sql import ReachSql
from tests.integration import shop
from tests.integration.joined_bench import JoinedBench
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


def test_every_committed_state_is_the_mapping_of_the_source(bench: JoinedBench) -> None:
    filled(bench)
    assert shop.differences(bench.project) == {}
    transactions = shop.changes(1, ORDERS)
    for number in range(12):
        statements = [one for _ in range(number % 3 + 1) for one in next(transactions)]
        transact(bench.project, statements)
        bench.follow()
        assert shop.differences(bench.project) == {}, statements


def test_the_comparison_notices_when_the_state_before_is_not_followed(
    bench: JoinedBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: an order that a line has left, and one that it was deleted from, stay as they were."""
    filled(bench)
    trace = ReachSql.trace

    def only_after(self: ReachSql) -> Iterator[str]:
        before = [table.before for table in self._tables.values() if table.before]
        return (text for text in trace(self) if not any(name in text for name in before))

    monkeypatch.setattr(ReachSql, "trace", only_after)
    transact(bench.project, ["DELETE FROM order_line WHERE order_id = 5 AND line_no = 1"])
    bench.follow()
    assert "order_summary" in shop.differences(bench.project)
