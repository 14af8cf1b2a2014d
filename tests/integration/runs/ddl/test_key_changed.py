"""A table gets another key between two runs: no row is passed over by its dump, and no mirror is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.errors import MigratorError, TargetError
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
JOINED = """
from transforms import Mapping

mapping = Mapping()


@mapping.target("n", key="id", grain="t.id", links=["u.t_id = t.id"])
def n(t, u):
    counted = u.groupBy("t_id").count()
    return t.join(counted, t.id == counted.t_id, "left").select("id", "code", "count")
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


@pytest.mark.parametrize(
    "sides", [("old_pg", "new_pg"), pytest.param(("old_maria", "new_mysql"), marks=pytest.mark.slow)], ids=str
)
def test_a_mirror_by_the_former_key_is_refused_until_that_is_put_back(
    sides: tuple[str, str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    old, new = (request.getfixturevalue(side) for side in sides)
    old.execute(
        "CREATE TABLE t (id int NOT NULL, code int NOT NULL, CONSTRAINT t_code UNIQUE (code), PRIMARY KEY (id))",
        "CREATE TABLE u (id int PRIMARY KEY, t_id int)",
        "INSERT INTO t VALUES (1, 30), (2, 20), (3, 10)",
        "INSERT INTO u VALUES (1, 1), (2, 1), (3, 2)",
    )
    server_log = old.kind == "postgresql"
    if server_log:
        old.execute(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in "tu"))
    new.execute("CREATE TABLE n (id int PRIMARY KEY, code int NOT NULL, count bigint)")
    project = written(tmp_path, old, new, "keyed", JOINED)
    project.run_here()
    rekey = ("DROP CONSTRAINT t_pkey" if server_log else "DROP PRIMARY KEY") + ", ADD PRIMARY KEY ({})"
    old.execute(f"ALTER TABLE t {rekey.format('code')}")
    if server_log:
        old.execute("UPDATE t SET id = 9 WHERE code = 30")
        with pytest.raises(TargetError, match="by another key than the table has by now"):
            project.run_here()
        assert new.query("SELECT id, code, count FROM n ORDER BY id") == [
            (1, 30, 2),
            (2, 20, 1),
            (3, 10, None),
        ]
    else:  # its log has the ALTER
        with pytest.raises(MigratorError, match="key"):
            project.run_here()
    old.execute(f"ALTER TABLE t {rekey.format('id')}", "UPDATE t SET code = 31 WHERE code = 30")
    if server_log:
        with pytest.raises(MigratorError, match="two rows may have had one key meanwhile"):
            project.run_here()
        assert project.command("dump", "start", "--table", "t") == 0
        project.run_here()
        assert new.query("SELECT id, code, count FROM n ORDER BY id") == [
            (2, 20, 1),
            (3, 10, None),
            (9, 31, None),
        ]
