"""A table gets another key between two runs, while its dump is under way: no row is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.run_project import written
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

MAPPING = """
from transforms import Mapping

mapping = Mapping()


@mapping.target("n", key="id")
def n(t):
    return t.select("id", "code")
"""
ROWS = 1500


def test_a_dump_under_way_begins_anew_under_another_key(
    old_pg: Database, new_pg: Database, tmp_path: Path
) -> None:
    """The last key that was read is a small number; of the other column, rows not yet read have smaller ones."""
    old_pg.execute("CREATE TABLE t (id int NOT NULL PRIMARY KEY, code int NOT NULL UNIQUE)")
    values = ", ".join(f"({number}, {ROWS + 1 - number})" for number in range(1, ROWS + 1))
    old_pg.execute(f"INSERT INTO t VALUES {values}", "ALTER TABLE t REPLICA IDENTITY FULL")
    new_pg.execute("CREATE TABLE n (id int PRIMARY KEY, code int NOT NULL)")
    project = written(tmp_path, old_pg, new_pg, "keyed", MAPPING)
    project.config.write_text(
        project.config.read_text() + "\n[capture]\nchunk_rows = 100\nchunk_rows_max = 100\n"
    )
    with project.process("run", "--until", "caught-up", "--plain", crash_at="capture.chunk:6") as process:
        process.communicate()
    assert process.returncode == -9
    old_pg.execute("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (code)")
    project.run_here()
    assert new_pg.query("SELECT count(*), count(DISTINCT code) FROM n") == [(ROWS, ROWS)]
