"""Joined targets on MySQL and MariaDB, batch by batch: after every commit they are what plain SQL says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.wiring import target as wiring_target
from tests.integration import shop
from tests.integration.joined.joined_bench import JoinedBench
from tests.integration.joined.test_joined_bench import (
    ORDERS,
    Stopped,
    filled,
    started_again,
    stop_at,
    transact,
)
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database) -> Project:
    """Each test names its target: the writer is one for both, so they share the tests between them."""
    shop.create(old_pg, ORDERS)
    return shop.make(tmp_path / "project", old_pg, request.getfixturevalue(f"new_{request.param}"))


@pytest.fixture
def bench(project: Project, tmp_path: Path, spark: SparkSession) -> Iterator[JoinedBench]:
    made = JoinedBench(project, tmp_path).begin()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("project", ["mysql"], indirect=True)
def test_every_committed_state_is_the_mapping_of_the_source(bench: JoinedBench) -> None:
    filled(bench)
    assert shop.differences(bench.project) == {}
    transactions = shop.changes(1, ORDERS)
    for number in (2, 12):
        statements = [one for _ in range(number) for one in next(transactions)]
        transact(bench.project, statements)
        bench.follow()
        assert shop.differences(bench.project) == {}, statements


@pytest.mark.slow
@pytest.mark.parametrize("project", ["maria"], indirect=True)
def test_in_slices_undone_and_derived_anew(project: Project, tmp_path: Path, spark: SparkSession) -> None:
    """Slice by slice; a transaction that is undone leaves nothing behind; the mirror gives the same again."""
    some = ("circle", "order_summary", "sales")
    bench = JoinedBench(project, tmp_path, slice_grains=10, only=some).begin()
    bench.dump("category", "product", "customer")
    bench.fill()
    stop_at(bench, "target.merged")
    with pytest.raises(Stopped):
        bench.dump("orders", "order_line")
    started_again(bench)
    assert project.new.query("SELECT count(*) FROM order_summary") == [(0,)]
    bench.apply_again(bench.last)
    assert bench.fill() > 1
    assert shop.differences(project, some) == {}
    transact(
        project,
        [
            "UPDATE customer SET referrer_id = customer_id % 9 + 1",
            "UPDATE product SET price = price + 1, category_id = category_id % 7 + 1 WHERE product_id < 9",
            "DELETE FROM order_line WHERE order_id < 5",
        ],
    )
    stop_at(bench, "target.merged")
    with pytest.raises(Stopped):
        bench.follow()
    started_again(bench)
    bench.apply_again(bench.last)
    assert shop.differences(project, some) == {}
    project.new.execute(  # as another mapping would have made them, and one row too many
        "UPDATE order_summary SET products = 'nothing' WHERE order_id > 9",
        "DELETE FROM order_summary WHERE order_id = 3",
        "INSERT INTO order_summary VALUES (999999, 'nobody', 0, 0, NULL)",
    )
    assert set(shop.differences(project, some)) == {"order_summary"}
    assert wiring_target.table_bytes(configuration.load(project.config), "order_summary") >= 8192
    assert project.command("remap", "order_summary") == 0
    bench.follow()
    assert shop.differences(project, some) == {}
    bench.close()
