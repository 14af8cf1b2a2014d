"""The benchmark of capture brings figures that are none of chance: each measured part is done to its end."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import MigratorError
from scenarios.capturebench.commands import capturebench
from scenarios.capturebench.library import PlainLibrary
from scenarios.capturebench.load import Second, between
from tests.servers import Database

pytestmark = pytest.mark.integration


def test_every_part_is_measured_and_written(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    table.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n")
    options = ["--source", "mariadb", "--rows", "3000", "--changes", "2000", "--small", "50", "--no-load"]
    done = CliRunner().invoke(capturebench, [*options, "--write", str(table)], catch_exceptions=False)
    assert done.exit_code == 0
    lines = table.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    for what in (
        "dump into the event log",
        "mysql-replication",
        "log, one row a transaction, into the event log",
    ):
        assert any(what in line and "/s" in line for line in lines), what


def test_the_library_reads_from_where_it_was_made(old_binlog: Database) -> None:
    """It was measured over the whole log of MariaDB once, whatever it was to read."""
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    library = PlainLibrary(old_binlog)
    old_binlog.execute("INSERT INTO t VALUES (4), (5)")
    with closing(library.events()) as events:
        assert next(events) == 2


def test_a_load_that_said_nothing_is_no_figure() -> None:
    seconds = [Second(float(at), 100.0 + at, 2.0) for at in range(10)]
    assert between(seconds, 2.0, 5.5) == (104.0, 2.0)
    with pytest.raises(MigratorError, match="said nothing"):
        between(seconds, 20.0, 25.0)
