"""Capture's memory is bounded by parts and segments, not by transactions: resident memory of a process of its own.

The controls are the same process with the bounds taken away: it must then need more, or the measure is blind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.integration.binlog_engine import MARIADB, BinlogEngine
from tests.integration.binlog_reading import max_allowed_packet
from tests.servers import Database

pytestmark = pytest.mark.integration

MIB = 1 << 20
SMALL_PARTS = {"source": {"part_bytes": 8 * MIB}}
LARGE_ROWS = "INSERT INTO t SELECT g, repeat(md5(g::text), 524288) FROM generate_series(1, 24) g"
MOST_MIB = 600


def no_bounds(changes: int) -> dict[str, Any]:
    """Everything in one segment, which is closed by its last row."""
    return {"held_bytes": 1 << 40, "capture": {"segment_rows": changes, "linger_s": 3600.0}}


@contextmanager
def capture(database: Database, folder: Path, limits: Mapping[str, Any]) -> Iterator[subprocess.Popen[str]]:
    arguments = [json.dumps(asdict(database)), "t", str(folder), json.dumps(limits)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.capture.capturing_alone", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def growth(database: Database, folder: Path, write: str, changes: int, limits: Mapping[str, Any]) -> float:
    """MiB by which capture's resident memory grew at most while one statement's transaction came through."""
    with capture(database, folder, limits) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        database.execute(write)
        process.stdin.write(f"{changes}\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
    return float(told["peak"] - told["before"]) / MIB


@pytest.fixture
def table(old_pg: Database) -> Database:
    old_pg.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL",
    )
    return old_pg


def many_rows(rows: int) -> str:
    """Rows of half a kilobyte."""
    return f"INSERT INTO t SELECT g, repeat(md5(g::text), 16) FROM generate_series(1, {rows}) g"


@pytest.mark.slow
def test_a_transaction_with_rows_of_16_mb(table: Database, tmp_path: Path) -> None:
    """384 MiB in one transaction."""
    assert growth(table, tmp_path, LARGE_ROWS, 24, SMALL_PARTS) < MOST_MIB


@pytest.mark.slow
def test_a_transaction_of_many_rows(table: Database, tmp_path: Path) -> None:
    assert growth(table, tmp_path, many_rows(200_000), 200_000, {}) < MOST_MIB


def rows_of_binlog(engine: BinlogEngine, rows: int, repeats: int) -> str:
    """One INSERT of ``rows`` rows, each of 32 times ``repeats`` bytes."""
    if engine is MARIADB:
        return f"INSERT INTO t SELECT seq, repeat(md5(seq), {repeats}) FROM seq_1_to_{rows}"
    numbers = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {})"
    return (
        f"INSERT INTO t {numbers.format(1000)}"
        f" SELECT a.n + 1000 * (b.n - 1), repeat(left(sha2(a.n, 256), 32), {repeats})"
        f" FROM s a JOIN s b WHERE a.n + 1000 * (b.n - 1) <= {rows}"
    )


@pytest.fixture
def binlog_table(spare_database: Database) -> Iterator[Database]:
    spare_database.execute("CREATE TABLE t (k int PRIMARY KEY, v longtext)")
    with max_allowed_packet(spare_database, 64 * MIB):
        yield spare_database


@pytest.mark.slow
def test_on_mysql_and_mariadb_rows_of_16_mb(
    engine: BinlogEngine, binlog_table: Database, tmp_path: Path
) -> None:
    assert growth(binlog_table, tmp_path, rows_of_binlog(engine, 24, 524_288), 24, {}) < MOST_MIB


@pytest.mark.slow
def test_on_mysql_and_mariadb_many_rows(engine: BinlogEngine, binlog_table: Database, tmp_path: Path) -> None:
    assert growth(binlog_table, tmp_path, rows_of_binlog(engine, 200_000, 16), 200_000, {}) < MOST_MIB


@pytest.mark.long
def test_on_mysql_and_mariadb_a_million_rows(
    engine: BinlogEngine, binlog_table: Database, tmp_path: Path
) -> None:
    assert growth(binlog_table, tmp_path, rows_of_binlog(engine, 1_000_000, 16), 1_000_000, {}) < MOST_MIB


@pytest.mark.long
def test_on_mysql_and_mariadb_the_measure_sees_rows_that_are_held(
    engine: BinlogEngine, binlog_table: Database, tmp_path: Path
) -> None:
    write = rows_of_binlog(engine, 1_000_000, 16)
    assert growth(binlog_table, tmp_path, write, 1_000_000, no_bounds(1_000_000)) > MOST_MIB


@pytest.mark.long
def test_a_transaction_of_a_million_rows(table: Database, tmp_path: Path) -> None:
    assert growth(table, tmp_path, many_rows(1_000_000), 1_000_000, {}) < MOST_MIB


@pytest.mark.long
def test_the_measure_sees_large_rows_that_are_held(table: Database, tmp_path: Path) -> None:
    assert growth(table, tmp_path, LARGE_ROWS, 24, {**SMALL_PARTS, **no_bounds(24)}) > MOST_MIB


@pytest.mark.long
def test_the_measure_sees_a_million_rows_that_are_held(table: Database, tmp_path: Path) -> None:
    assert growth(table, tmp_path, many_rows(1_000_000), 1_000_000, no_bounds(1_000_000)) > MOST_MIB
