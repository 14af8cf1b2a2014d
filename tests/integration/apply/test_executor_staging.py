"""Dump rows that executors put beside the target: the same end as the driver's way, whatever dies on the way."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from migrator.adapters.targets.postgres.rows import executor_staging
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.errors import FencedError, TargetError
from migrator.ports.target import StagedRows, TargetBatch
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.contract.targets.target_under_test import checkpoint
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.target_bench import Bench, bench, settings_of
from tests.servers import Database
from transforms.on_spark.staged import staged_parts

pytestmark = [pytest.mark.integration, pytest.mark.spark]

LEFT = "SELECT relname FROM pg_class WHERE relname LIKE 'stage\\_%' AND relkind = 'r'"
TABLE = (
    "CREATE TABLE thing (id bigint PRIMARY KEY, ref uuid, seen timestamptz, name text CHECK (name <> 'bad'),"
    " extra text DEFAULT 'kept')"
)
REF = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a01"
INFINITY = 2**63 - 1


def things(first: int, last: int, name: str = "x") -> pa.Table:
    """Rows whose columns are staged in different forms in different parts: infinities, UUIDs in another
    spelling."""
    ids = list(range(first, last))
    seen = pa.array([INFINITY if i == first else i for i in ids], pa.int64()).cast(pa.timestamp("us", "UTC"))
    refs = [f"{{{REF}}}" if i % 1000 == 7 else REF for i in ids]
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "ref": refs, "seen": seen, "name": [f"{name}{i}" for i in ids]}
    )


def staged(it: Bench, spark: SparkSession, *parts: pa.Table) -> StagedRows:
    """The tables' rows as executors stage them, one partition each."""
    stage = it.target.staging(it.target.tables(["thing"])[0], it.segment + 1)
    assert stage is not None
    receipts: list[str] = []
    for rows in parts:
        found, number = staged_parts(spark.createDataFrame(rows).coalesce(1), stage)
        assert number == rows.num_rows
        receipts += found
    whole = pa.concat_tables(parts)
    return StagedRows(tuple(receipts), whole.num_rows, lambda: whole)


def never() -> pa.Table:
    raise AssertionError("the staged rows should have been good enough")


def content(database: Database) -> list[tuple[object, ...]]:
    return database.query(
        "SELECT id, ref::text, extract(epoch FROM seen), name, extra FROM thing ORDER BY id"
    )


def test_parts_in_different_forms_are_merged_as_the_driver_would(
    new_pg: Database, spark: SparkSession
) -> None:
    parts = (things(0, 500), things(500, 1200), things(1200, 1201))
    with bench(new_pg, TABLE) as it:
        it.apply(it.part("thing", chunk=pa.concat_tables(parts), strict=False))
        expected = content(new_pg)
        new_pg.execute("DELETE FROM thing")  # a TRUNCATE by somebody else would be named
        it.apply(it.part("thing", chunk=replace(staged(it, spark, *parts), here=never), strict=False))
        assert content(new_pg) == expected
        assert len(expected) == 1201
        # Once more, and with changes of the log in the same batch: rows exist already, and the log is later.
        again = replace(staged(it, spark, *(part.slice(0, 300) for part in parts)), here=never)
        it.apply(it.part("thing", again, before=things(3, 4), after=things(10, 11, "later"), strict=False))
        rows = {row[0]: row for row in content(new_pg)}
        assert (3 in rows, rows[10][3], rows[11], len(rows)) == (False, "later10", expected[11], 1200)
        assert new_pg.query(LEFT) == []


def test_an_attempt_that_the_driver_was_not_told_of_is_not_merged(
    new_pg: Database, spark: SparkSession
) -> None:
    with bench(new_pg, TABLE) as it:
        lost = staged(it, spark, things(100, 200))
        told = staged(it, spark, things(0, 100))
        assert len(new_pg.query(LEFT)) == len(lost.parts) + len(told.parts) == 2
        it.apply(it.part("thing", chunk=told, strict=False))
        assert [row[0] for row in content(new_pg)] == list(range(100))
        it.apply(it.part("thing", chunk=staged(it, spark, things(200, 201)), strict=False))
        assert new_pg.query(LEFT) == [], "the next batch drops what the one before left"


@pytest.mark.parametrize("harm", ["TRUNCATE {}", "DROP TABLE {}", "DELETE FROM {} WHERE c0 = 5"])
def test_rows_that_are_gone_are_asked_for_again(new_pg: Database, spark: SparkSession, harm: str) -> None:
    """A server that recovers from a crash has emptied its unlogged tables."""
    with bench(new_pg, TABLE) as it:
        rows = staged(it, spark, things(0, 50))
        new_pg.execute(harm.format(f'migrator."{new_pg.query(LEFT)[0][0]}"'))
        it.apply(it.part("thing", chunk=rows, strict=False))
        assert len(content(new_pg)) == 50


@pytest.mark.parametrize(
    "rows",
    [
        things(0, 50).set_column(3, "name", pa.array(["ok"] * 30 + ["bad"] + ["ok"] * 19)),
        pa.concat_tables([things(0, 50), things(7, 8)]),
    ],
    ids=["check constraint", "key twice"],
)
def test_a_refused_row_is_named_as_on_the_drivers_way(
    new_pg: Database, spark: SparkSession, rows: pa.Table
) -> None:
    with bench(new_pg, TABLE) as it:
        words = []
        for chunk in (rows, staged(it, spark, rows)):
            with pytest.raises(TargetError) as caught:
                it.apply(it.part("thing", chunk=chunk, strict=False))
            words.append(str(caught.value))
        assert words[0] == words[1]
        assert "id=30" in words[0] or "id=7" in words[0]
        assert (content(new_pg), it.ledger_segment()) == ([], 0)


def test_a_stopped_leaders_staging_is_dropped_and_cannot_be_merged(
    new_pg: Database, spark: SparkSession
) -> None:
    with bench(new_pg, TABLE) as it:
        rows = staged(it, spark, things(0, 10))
        part = it.part("thing", chunk=rows, strict=False)
        other = PostgresTargetWriter(settings_of(new_pg, migration="bench_2"))
        other.open(5)
        other.close()
        assert len(new_pg.query(LEFT)) == 1, "another migration's staging is none of our business"
        newer = PostgresTargetWriter(settings_of(new_pg))
        newer.open(2)
        assert new_pg.query(LEFT) == []
        with pytest.raises(FencedError):
            it.target.apply(TargetBatch(1, checkpoint(1), (part,)))
        newer.close()
        assert content(new_pg) == []


def test_tables_that_want_another_order_are_left_to_the_driver(new_pg: Database) -> None:
    with bench(new_pg, "CREATE TABLE person (id bigint PRIMARY KEY, email text UNIQUE)") as it:
        assert it.target.staging(it.target.tables(["person"])[0], 1) is None


def test_passwords_stay_out_of_what_is_shown(new_pg: Database) -> None:
    with bench(new_pg, TABLE, password="s3cret-word") as it:
        assert "s3cret-word" not in repr(it.target.staging(it.target.tables(["thing"])[0], 1))


# -- whole runs ---------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    create(scenario_database(old_pg), 3000)
    made = run_project.make(tmp_path / "project", old_pg, new_pg)
    small = '\n[apply]\nstaging = "executors"\nstaging_rows = 1\nbatch_rows = 1000\n'
    small += "\n[capture]\nchunk_rows = 400\nchunk_rows_max = 400\ndump_share = 1.0\n"
    made.config.write_text(made.config.read_text() + small)
    return made


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows merged from staging tables, batch by batch."""
    real: Callable[..., None] = executor_staging.merge_staged
    seen: list[int] = []

    def merge(*arguments: object) -> None:
        real(*arguments)
        seen.extend(each.num_rows for each in arguments if isinstance(each, StagedRows))

    monkeypatch.setattr(executor_staging, "merge_staged", merge)
    return seen


@pytest.mark.slow
def test_a_run_under_writers_ends_equal_and_leaves_no_tables(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = counting(monkeypatch)
    writers = OrderWriters(scenario_database(project.old), 3000, rate_per_s=200)
    writers.start()
    project.run_here()
    assert writers.stop().row_changes > 0
    project.run_here()
    assert sum(merged) > 2000, "the executors were not asked"
    assert project.differences() == []
    assert project.new.query(LEFT) == []


@pytest.mark.slow
def test_killed_between_staging_and_merge_it_goes_on(project: Project, spark: SparkSession) -> None:
    for _ in range(4):  # where capture is slow, a batch may have none of the dump's rows
        process = project.process("run", "--plain", crash_at="apply.mapped:2")
        output, _ = process.communicate(timeout=240)
        assert process.returncode == -signal.SIGKILL, output
        if project.new.query(LEFT):
            break
    else:
        raise AssertionError("nothing was staged when it was killed: the test proves nothing")
    project.run_here()
    assert project.differences() == []
    assert project.new.query(LEFT) == []


@pytest.mark.slow
def test_a_task_that_dies_after_staging_is_retried_unseen(project: Project, tmp_path: Path) -> None:
    flag = tmp_path / "died"
    command = [sys.executable, "-m", "tests.integration.apply.staging_killer", str(project.config), str(flag)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert flag.exists()
    assert project.differences() == []
