"""The memory of a whole run (Python, JVM, workers) while one large transaction passes through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.bench.orders import old_schema
from scenarios.resources import PeakMemory
from tests.integration.run_project import Project, make, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.long]

GIB = 1 << 30
ROWS = 1_000_000
MOST_GIB = 6.0
"""JVM heap (3 GiB at most), Python's Arrow memory of one batch, and the rest."""


def peak_gib(project: Project) -> float:
    """GiB that a run needs at most until it has caught up."""
    process = project.process("run", "--plain", "--until", "caught-up")
    with PeakMemory(process.pid) as memory:
        output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    return memory.peak_bytes / GIB


@pytest.mark.parametrize("engine", ["pg", "maria", "mysql"])
def test_a_transaction_of_a_million_rows(
    engine: str, request: pytest.FixtureRequest, new_pg: Database, tmp_path: Path
) -> None:
    old: Database = request.getfixturevalue(f"old_{engine}")
    old_schema.create(scenario_database(old), ROWS)
    project = make(tmp_path / "project", old, new_pg)
    dump = peak_gib(project)
    old.execute("UPDATE orders SET items = items + 1")
    peak = peak_gib(project)
    print(f"{engine}: {dump:.2f} GiB dumping, {peak:.2f} GiB with the large transaction")
    assert peak < MOST_GIB
    ((wrong,),) = new_pg.query("SELECT count(*) FROM purchase WHERE item_count <> 1 + purchase_id % 9")
    assert wrong == 0
    assert new_pg.query("SELECT count(*) FROM purchase") == [(ROWS,)]


def test_rows_of_16_mb(old_pg: Database, new_pg: Database, tmp_path: Path) -> None:
    """Dumped, and changed in one transaction of 384 MiB."""
    old_schema.create(scenario_database(old_pg), 24)
    project = make(tmp_path / "project", old_pg, new_pg)
    wide = "repeat(md5(id::text || '{}'), 524288)"
    old_pg.execute(
        "ALTER TABLE orders ALTER comment TYPE text", f"UPDATE orders SET comment = {wide.format('a')}"
    )
    new_pg.execute("ALTER TABLE purchase ALTER note TYPE text")
    dump = peak_gib(project)
    old_pg.execute(f"UPDATE orders SET comment = {wide.format('b')}")
    peak = peak_gib(project)
    print(f"{dump:.2f} GiB dumping, {peak:.2f} GiB with the large transaction")
    assert max(dump, peak) < MOST_GIB
    wanted = old_pg.query("SELECT id, md5(comment) FROM orders ORDER BY id")
    assert new_pg.query("SELECT purchase_id, md5(note) FROM purchase ORDER BY 1") == wanted
