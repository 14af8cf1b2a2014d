"""Joined mappings over whole runs on real servers: under writers, killed, verified."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import dropwhile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration import shop
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ORDERS = 200
COUNTED = ("order_summary", "pick", "sales")
FEW = ("order_summary", "sales", "circle")
"""Every batch of each shape of grain is looked at in test_joined_bench; here the run around them is."""
# Each joined table counts the same lines and pieces its own way: in a snapshot that is one state of the source they
# agree, whatever the writers do. While the dump runs all are empty; each is filled as the last table that it reads is
# dumped, ``sales`` last for it alone reads ``category``.
_ALIKE = """
    SELECT (SELECT coalesce(sum(line_count), 0) FROM order_summary), (SELECT count(*) FROM pick),
        (SELECT coalesce(sum(sold_lines), 0) FROM sales),
        (SELECT coalesce(sum(quantity), 0) FROM pick), (SELECT coalesce(sum(quantity), 0) FROM sales)"""


@pytest.fixture
def from_postgres(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    shop.create(old_pg, ORDERS)
    return shop.make(tmp_path / "project", old_pg, new_pg, COUNTED)


@pytest.fixture
def from_mariadb(tmp_path: Path, old_maria: Database, new_pg: Database) -> Project:
    shop.create(old_maria, ORDERS)
    return shop.make(tmp_path / "project", old_maria, new_pg, FEW)


@contextmanager
def writing(project: Project, seed: int) -> Iterator[list[int]]:
    """Random transactions, one after the other, for as long as the block runs; the list holds their number."""
    stop, done = threading.Event(), [0]

    def write() -> None:
        connection = project.old.connect(autocommit=False)
        for statements in shop.changes(seed, ORDERS):
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            connection.commit()
            done[0] += 1
            if stop.wait(0.1):
                break
        connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


@contextmanager
def sampling(project: Project) -> Iterator[list[tuple[int, ...]]]:
    """Snapshots of the target for as long as the block runs."""
    stop, found = threading.Event(), list[tuple[int, ...]]()

    def sample() -> None:
        while not stop.wait(0.1):
            found.append(tuple(int(value) for value in project.new.query(_ALIKE)[0]))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def judged(project: Project) -> int:
    """The verdict at rest: unknown where the slot was told of a later, empty part of the log as the run ended."""
    for _ in range(3):
        verdict = project.command("verify", "--wait", "20")
        if verdict != 3:
            break
        project.run_here()
    return verdict


@pytest.mark.slow
def test_under_writers_every_snapshot_is_one_state_and_the_end_is_equal(
    from_postgres: Project, spark: SparkSession
) -> None:
    project = from_postgres
    with sampling(project) as samples, writing(project, 1) as written:
        project.run_here()
        project.run_here()
    assert written[0] > 0
    filled = set(dropwhile(lambda one: not all(one), samples))
    assert len(filled) > 1, "one state only: nothing was sampled while it moved"
    for lines, picks, sold_lines, picked, sold in filled:
        assert (lines, sold_lines, sold) == (picks, picks, picked)
    project.run_here()
    assert shop.differences(project, COUNTED) == {}
    assert judged(project) == 0


@pytest.mark.slow
def test_killed_while_filling_and_while_streaming_it_ends_equal(
    from_mariadb: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with writing(from_mariadb, 2):
        for point in ("joined.filled", "target.mirrored:3"):
            process = from_mariadb.process("run", "--plain", crash_at=point)
            output, _ = process.communicate(timeout=240)
            assert process.returncode == -signal.SIGKILL, f"{point} was never reached:\n{output}"
    from_mariadb.run_here()
    assert shop.differences(from_mariadb, FEW) == {}
    from_mariadb.new.execute(
        "UPDATE order_summary SET total = total + 1 WHERE order_id = (SELECT max(order_id) FROM order_summary)"
    )
    assert judged(from_mariadb) == 1, "the judge sees a wrong sum"
    assert from_mariadb.command("status") == 1, "the last word of the judge"
    assert "joined     order_summary: filled from the mirror" in capfd.readouterr().out
