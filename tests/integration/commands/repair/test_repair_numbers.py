"""Keys that are numbers of a kind that Spark has no integer for: a repair reads the rows concerned, and no others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.run.commands.repair import Wanted, Way, repair_steps
from migrator.wiring import parts as wiring
from migrator.wiring import repair as wiring_repair
from tests.integration.commands.repair import test_repair
from tests.integration.commands.repair.test_repair import EXTRA, KEYS, dumped
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 20_000
"""So many that a server looks for a few of them by the index."""
UNSIGNED = 2**64 - 1
READ = {
    "mariadb": "SELECT coalesce(sum(rows_read), 0) FROM information_schema.table_statistics"
    " WHERE table_schema = database() AND table_name = 'orders'",
    "postgresql": "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables"
    " WHERE relname = 'orders'",
}


def unsigned(project: Project) -> None:
    project.old.execute(
        "ALTER TABLE orders MODIFY id bigint unsigned NOT NULL",
        f"UPDATE orders SET id = {UNSIGNED} WHERE id = 31",
    )
    project.new.execute("ALTER TABLE purchase ALTER purchase_id TYPE numeric(20,0)")


def halves(project: Project) -> None:
    """Keys with decimals, and one more of them in the target."""
    project.old.execute(
        "ALTER TABLE orders ALTER id TYPE numeric(24,1)", "UPDATE orders SET id = 31.5 WHERE id = 31"
    )
    project.new.execute("ALTER TABLE purchase ALTER purchase_id TYPE numeric(25,2)")


def rows_read(project: Project) -> int:
    """Runs until all is applied; returns the rows that the source's server read of the table meanwhile."""
    before = settled(project.old)
    project.run_here()
    return settled(project.old) - before


def settled(source: Database) -> int:
    """The rows read of the table so far: a server adds up what a session read some time after it ended."""
    seen, now = -1, int(source.query(READ[source.kind])[0][0])
    while seen != now:
        threading.Event().wait(1.5)
        seen, now = now, int(source.query(READ[source.kind])[0][0])
    return now


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "change", "moved", "tell"),
    [
        ("old_maria", unsigned, str(UNSIGNED), "SET GLOBAL userstat = 1"),
        ("old_pg", halves, "31.50", "SELECT 1"),
    ],
)
def test_only_the_rows_concerned_are_read(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    new_pg: Database,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    change: Callable[[Project], None],
    moved: str,
    tell: str,
) -> None:
    monkeypatch.setattr(test_repair, "ROWS", ROWS)
    source: Database = request.getfixturevalue(old)
    source.execute(tell)
    project = dumped(tmp_path, source, new_pg, change)
    project.new.execute(f"UPDATE purchase SET note = 'rogue' WHERE purchase_id = {moved}")
    idle = rows_read(project)
    keys = tuple((str(key),) for key in (*KEYS, EXTRA, moved))
    settings = configuration.load(project.config)
    steps = repair_steps(wiring.parts(settings), [Wanted("purchase", ("purchase_id",), keys)])
    assert [(step.way, step.rows) for step in steps] == [(Way.LISTED, len(keys))]
    wiring_repair.begin_repair(settings, steps)
    repairing = rows_read(project)
    assert repairing - idle < ROWS / 4, (
        f"{repairing} rows were read for {len(keys)} keys, {idle} without them"
    )
    assert project.differences() == []
