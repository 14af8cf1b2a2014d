"""Online schema changes end with another table under a captured name: it alone is read again, beside writers."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import ReplacedError
from tests.integration import shop
from tests.integration.run_project import Project
from tests.integration.runs.ddl.altered_shop import (
    ENGINES,
    begun,
    changes,
    halted,
    judged,
    running,
    until_applied,
)
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

Swap = Callable[[str], list[str]]


def copied(table: str, beside: str) -> list[str]:
    """The statements of a tool that fills a copy of other columns; nothing is written meanwhile."""
    return [
        f"CREATE TABLE {beside} (LIKE {table} INCLUDING ALL)",
        f"ALTER TABLE {beside} REPLICA IDENTITY FULL",
        f"ALTER TABLE {beside} DROP COLUMN gone",
        f"ALTER TABLE {beside} DROP COLUMN IF EXISTS fresh, ADD COLUMN fresh int DEFAULT 3",
        f"INSERT INTO {beside} ({COLUMNS[table]}, worn) SELECT {COLUMNS[table]}, worn FROM {table}",
    ]


def copied_binlog(table: str, beside: str) -> list[str]:
    fresh = f"fresh{next(NUMBERS)}"
    return [
        f"CREATE TABLE {beside} LIKE {table}",
        f"ALTER TABLE {beside} DROP COLUMN gone, ADD COLUMN {fresh} int DEFAULT 3 FIRST",
        f"INSERT INTO {beside} ({COLUMNS[table]}, worn) SELECT {COLUMNS[table]}, worn FROM {table}",
    ]


COLUMNS = {"category": "category_id, name", "product": "product_id, name, price, category_id"}
NUMBERS = itertools.count(1)
PT_OSC = "pt-online-schema-change"
READ_AGAIN = "all of its rows are read again"
LINE, PRODUCT = "order_line.order_id = orders.order_id", "order_line.product_id = product.product_id"
LINKS = {
    "order_summary": [LINE, PRODUCT, "orders.customer_id = customer.customer_id"],
    "article": [PRODUCT],
    "sales": [PRODUCT, "product.category_id = category.category_id"],
}


def renamed(engine: str, table: str, beside: str, aside: str) -> list[str]:
    if engine == "pg":
        return [
            f"BEGIN; ALTER TABLE {table} RENAME TO {aside}; ALTER TABLE {beside} RENAME TO {table}; COMMIT"
        ]
    return [f"RENAME TABLE {table} TO {aside}, {beside} TO {table}"]


def swapped(engine: str, table: str, again: bool = False) -> list[str]:
    """A whole sequence; a row of ``product`` that no order has is in the former table only."""
    fill = copied if engine == "pg" else copied_binlog
    drops = [f"DROP TABLE IF EXISTS _{table}_del"]
    if again:
        word = "ADD COLUMN IF NOT EXISTS" if engine != "mysql" else "ADD"
        drops.append(f"ALTER TABLE {table} {word} gone int")
    gone = f"({900 + next(NUMBERS)}, 'gone', 1, 1)"
    drop = [f"INSERT INTO {table} (product_id, name, price, category_id) VALUES {gone}"]
    return [
        *drops,
        *fill(table, f"_{table}_gho"),
        *(drop if table == "product" else []),
        *renamed(engine, table, f"_{table}_gho", f"_{table}_del"),
        f"UPDATE {table} SET name = 'after the swap' WHERE {table}_id = 2",
    ]


def unlinked(project: Project, engine: str) -> None:
    """No foreign key leads to or from the tables (gh-ost refuses those, too): the mapping declares its links."""
    old = project.old
    word = "CONSTRAINT" if engine == "pg" else "FOREIGN KEY"
    where = "= current_schema()" if engine == "pg" else "= DATABASE()"
    for table in ("product", "order_line"):
        names = old.query(
            "SELECT constraint_name FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY'"
            f" AND table_schema {where} AND table_name = '{table}'"
        )
        old.execute(*(f"ALTER TABLE {table} DROP {word} {name}" for (name,) in names))
    mapping = project.config.parent / "mapping.py"
    text = mapping.read_text()
    for target, links in LINKS.items():
        text = text.replace(f'@mapping.target("{target}",', f'@mapping.target("{target}", links={links!r},')
        text = text.replace(
            f'@mapping.target(\n    "{target}",', f'@mapping.target(\n    "{target}", links={links!r},'
        )
    mapping.write_text(text)


def rows_dumped(project: Project) -> dict[str, int]:
    """Rows read by chunks so far, by table."""
    name = "migrator.ledger" if project.new.kind == "postgresql" else "migrator_ledger"
    ((text,),) = project.new.query(f"SELECT checkpoint FROM {name}")
    found = text if isinstance(text, dict) else json.loads(str(text))
    names = [dump["table"] for dump in found["dumps"]]
    plain = [name if isinstance(name, str) else name[-1] for name in names]
    return dict(zip(plain, (int(dump["rows"]) for dump in found["dumps"]), strict=True))


@contextmanager
def writing(old: Database, numbers: Iterator[int] | None = None) -> Iterator[None]:
    """Changes one after the other, for as long as the block runs; ``numbers``: which ones."""
    stop, done = threading.Event(), threading.Event()
    drawn = numbers or itertools.count(300)

    def run() -> None:
        while not stop.wait(0.1):
            old.execute(*changes(next(drawn)))
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert done.is_set(), "the server refused a change"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_swap_is_read_again_by_itself_and_no_other_table(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path)
    unlinked(project, engine)
    project.run_here()
    before = rows_dumped(project)
    with running(project) as migration:
        until_applied(migration, project)
        project.old.execute(*changes(1), *swapped(engine, "product"))
        await_true(lambda: READ_AGAIN in "".join(migration.progress.snapshot().warnings), "it is noticed")
        project.old.execute(*changes(2))
    project.run_here()  # and stopped before all is read
    judged(project)
    project.old.execute(*swapped(engine, "category"), *changes(3))  # while nobody runs
    project.run_here()
    judged(project)
    after = rows_dumped(project)
    assert {table for table in before if after[table] != before[table]} <= {"product", "category"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_shall_stop_stops(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    project = begun(engine, request, tmp_path, only=("label",))
    unlinked(project, engine)
    config = project.config
    config.write_text(config.read_text().replace("[source]", '[source]\nreplaced_tables = "stop"', 1))
    project.run_here()
    stopped = halted(project, *swapped(engine, "category"))
    assert isinstance(stopped, ReplacedError)
    assert len(project.new.query("SELECT * FROM label")) == 7, "nothing went"
    *statements, dump = (
        stopped.remedy.partition("rows read: ")[2].partition("; then start again")[0].split("; ")
    )
    project.old.execute(*statements)
    assert project.command(*dump.split()[1:]) == 0
    project.run_here()
    assert shop.differences(project, ("label",)) == {}


@pytest.mark.skipif(not shutil.which(PT_OSC), reason="percona-toolkit is not installed")
def test_pt_online_schema_change_beside_writers_and_a_run(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """The tool itself: its triggers, its copy, its swap, its DROP of the former table."""
    project = begun("maria", request, tmp_path)
    unlinked(project, "maria")
    project.run_here()
    before = rows_dumped(project)
    with running(project) as migration, writing(project.old):
        until_applied(migration, project)
        alter(
            project.old, "product", "DROP COLUMN gone, ADD COLUMN fresh int DEFAULT 3 FIRST, ADD INDEX (name)"
        )
        await_true(lambda: READ_AGAIN in "".join(migration.progress.snapshot().warnings), "it is noticed")
    project.run_here()
    judged(project)
    after = rows_dumped(project)
    assert {table for table in before if after[table] != before[table]} <= {"product"}


def alter(old: Database, table: str, alteration: str) -> None:
    """Runs the tool."""
    where = f"h={old.host},P={old.port},u={old.user},D={old.database},t={table}"
    login = [f"--password={old.password}"] if old.password else []
    done = subprocess.run(
        [PT_OSC, "--alter", alteration, "--execute", "--chunk-size=10", *login, where],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ["pg", "maria"])
def test_killed_at_any_time_it_ends_equal(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> None:
    """Swaps one after the other, of the same table too, before, in and after its being read again."""
    project = begun(engine, request, tmp_path)
    unlinked(project, engine)
    project.run_here()
    for after_s in (3.0, 6.0, 12.0):
        process = project.process("run")
        try:
            time.sleep(8.0)
            for table in ("product", "category", "product"):
                project.old.execute(*changes(next(NUMBERS)), *swapped(engine, table, again=True))
                time.sleep(after_s / 3)
            assert process.poll() is None, process.communicate()[0]
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    project.run_here()
    judged(project)
