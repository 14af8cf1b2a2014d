"""``migrator try``: what it shows of real rows, and that it leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import RequestError
from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ORDERS = 12


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest, new_pg: Database, spark: SparkSession) -> Project:
    old: Database = request.getfixturevalue(request.param)
    shop.create(old, ORDERS)
    return shop.make(tmp_path / "project", old, new_pg)


on_all = pytest.mark.parametrize(
    "project",
    [
        "old_pg",
        pytest.param("old_maria", marks=pytest.mark.slow),
        pytest.param("old_mysql", marks=pytest.mark.slow),
    ],
    indirect=True,
)
on_postgres = pytest.mark.parametrize("project", ["old_pg"], indirect=True)


def tried(project: Project, capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[dict]:  # type: ignore[type-arg]
    capfd.readouterr()
    assert project.command("try", *arguments, "--json") == code
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


@pytest.mark.slow
@on_all
def test_grains_are_shown_as_the_whole_mapping_makes_them(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = {
        table: {
            tuple(row): row for row in map(shop._plain, project.old.query(shop.expected(project.old, table)))
        }
        for table in shop.EXPECTED
    }
    for table, limit in (("order_summary", "2"), ("referral", "3"), ("sales", "1"), ("namesake", "1")):
        found = tried(project, capfd, table, "--limit", limit)
        assert len(found) == int(limit)
        rows = [tuple("" if v is None else v for v in row.values()) for one in found for row in one["new"]]
        assert rows, table
        assert set(rows) <= set(wanted[table]), table
    [one] = tried(project, capfd, "order_summary", "--key", "7")
    assert one["of"] == "orders order_id=7"
    assert {row["order_id"] for row in one["old"]["order_line"]} == {"7"}
    assert len(one["old"]["order_line"]) == 3
    assert [row["order_id"] for row in one["new"]] == ["7"]


@on_postgres
def test_what_the_mapping_doesnt_read_is_never_shown(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    project.old.execute("ALTER TABLE orders ADD COLUMN password varchar(20) DEFAULT 'geheim'")
    [one] = tried(project, capfd, "order_summary", "--key", "7")
    assert {"order_id", "customer_id"} <= set(one["old"]["orders"][0])
    assert "password" not in one["old"]["orders"][0]
    assert "geheim" not in json.dumps(one)


@on_postgres
def test_nothing_is_written_and_rows_stand_side_by_side(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    assert project.command("try", "label", "--limit", "2") == 0
    lines = capfd.readouterr().out.splitlines()
    assert "category category_id=1" in lines
    assert any("[category]" in line and "[label]" in line for line in lines)
    assert lines[-1] == "2 tried, 0 with problems"
    assert not (project.config.parent / ".migrator" / "events").exists()
    assert project.old.query(
        "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
    ) == [(0,)]
    assert project.old.query("SELECT count(*) FROM pg_publication") == [(0,)]
    assert project.new.query("SELECT count(*) FROM label") == [(0,)]
    assert project.new.query(
        "SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'migrator%'"
    ) == [(0,)]


@on_postgres
def test_bad_values_are_named_by_row_and_column(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    (project.config.parent / "mapping.py").unlink()
    (project.config.parent / "bad.sql").write_text(
        "-- target: order_summary\n-- key: order_id\n"
        "SELECT order_id, nullif(string(day), '3') AS customer_name, cast(100 / (day - 4) AS bigint) AS line_count,\n"
        "    if(day = 5, NULL, 1.5) AS total FROM orders\n"
    )
    found = {one["of"]: one for one in tried(project, capfd, "order_summary", code=1)}
    assert len(found) == ORDERS
    bad = {name: one["problems"] for name, one in found.items() if one["problems"]}
    assert set(bad) == {"orders order_id=4", "orders order_id=5"}
    [divided] = bad["orders order_id=4"]
    assert divided["column"] == "line_count"
    assert "DIVIDE_BY_ZERO" in divided["cause"]
    assert found["orders order_id=4"]["new"] is None
    [null] = bad["orders order_id=5"]
    assert (null["column"], null["cause"]) == ("total", "NULL, and the target's column is NOT NULL")


@on_postgres
def test_a_key_that_two_grains_make_is_named_with_both(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    (project.config.parent / "mapping.py").unlink()
    wrong = project.config.parent / "wrong.sql"
    query = (
        "-- target: order_summary\n-- key: order_id\n-- grain: orders.order_id\n"
        "SELECT {key} AS order_id, 'x' AS customer_name, count(*) AS line_count,\n"
        "    cast(1.5 AS decimal(12,2)) AS total\n"
        "    FROM orders GROUP BY {key}\n"
    )
    wrong.write_text(query.format(key="order_id % 2"))
    found = tried(project, capfd, "order_summary", "--limit", "3", code=1)
    assert [len(one["problems"]) for one in found] == [0, 0, 1, 1]
    assert found[3]["of"] == "these grains together"
    [problem] = found[2]["problems"]
    assert problem["column"] == "order_id"
    assert "1 is made of orders order_id=1 too" in problem["cause"]
    wrong.write_text(query.format(key="order_id"))
    assert not any(one["problems"] for one in tried(project, capfd, "order_summary", "--limit", "3"))


@on_postgres
def test_what_cant_be_tried_is_said(project: Project) -> None:
    with pytest.raises(RequestError, match="the mapping makes no table 'nothing'"):
        project.command("try", "nothing")
    with pytest.raises(RequestError, match=r"no row of .*orders has such a key"):
        project.command("try", "order_summary", "--key", "999")
    with pytest.raises(RequestError, match="can't be a key"):
        project.command("try", "order_summary", "--key", "x")
    with pytest.raises(RequestError, match=r"--key needs to know of which table.*--source customer"):
        project.command("try", "party", "--key", "1")
