"""The benchmark of capture brings figures that are none of chance: each measured part is done to its end."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import MigratorError
from scenarios.bench.capture import commands
from scenarios.bench.capture.commands import capturebench
from scenarios.bench.capture.library import PlainLibrary
from scenarios.bench.capture.load import Second, within
from scenarios.bench.capture.ours import EARLY_S, lags_of
from scenarios.bench.capture.probe import Commit
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "others"), [("mariadb", True), pytest.param("mysql", False, marks=pytest.mark.slow)]
)
def test_every_part_is_measured_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, others: bool, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(source)  # where there is no MySQL to be had, the reason
    monkeypatch.setattr(commands, "_WARM_UP_S", 0.2)
    monkeypatch.setattr(commands, "_WINDOW_S", 1.0)
    table = tmp_path / "table.md"
    table.write_text("before\n<!-- measured: begin -->\nold\n<!-- measured: end -->\nafter\n")
    options = ["--source", source, "--rows", "3000", "--changes", "2000", "--small", "50", "--no-load"]
    options.append("--others" if others else "--no-others")
    done = CliRunner().invoke(capturebench, [*options, "--write", str(table)], catch_exceptions=False)
    assert done.exit_code == 0
    lines = table.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("before", "after", False)
    for what in (
        "dump into the event log",
        "log, one row a transaction, into the event log",
    ):
        assert any(what in line and "/s" in line for line in lines), what
    assert any("mysql-replication" in line and "/s" in line for line in lines) is others
    for when in ("alone", "beside dumps"):
        found = [
            re.search(rf"durable segment, {when} .* p50 ([\d,]+), p99 ([\d,]+) ms", line) for line in lines
        ]
        assert any(each and 0 <= int(each[1]) <= int(each[2]) for each in found), when


@pytest.mark.slow
def test_a_load_is_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_WARM_UP_S", 0.2), ("_ROUNDS", 2), ("_ROUND_S", 2.1), ("_SETTLED_S", 0.1)):
        monkeypatch.setattr(commands, name, value)
    options = ["--source", "postgresql", "--rows", "3000", "--no-throughput"]
    done = CliRunner().invoke(capturebench, options, catch_exceptions=False)
    assert done.exit_code == 0
    for how in ("unthrottled", r"at [\d,]+ transactions/s"):
        for what in ("alone", "log captured", "beside dumps"):
            assert re.search(rf"pgbench {how}, {what} .*\d /s.*\dx \([\d.]+ to [\d.]+\)", done.output), what
    assert "dump into the event log" not in done.output


def test_a_commit_is_durable_with_the_first_segment_that_reaches_it(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog" / "segments"
    folder.mkdir(parents=True)
    durable = []
    for number, order in enumerate((5, 5, 9)):
        file = folder / f"{number}.json"
        file.write_text(json.dumps({"checkpoint": {"position": {"order": order}}, "committed_at_us": 0}))
        durable.append(file.stat().st_ctime + EARLY_S)
    commits = [Commit(1.0, 3), Commit(2.0, 5), Commit(3.0, 6), Commit(4.0, 9), Commit(5.0, 10)]
    first, _, third = durable
    expected = [(first, first - 2), (third, third - 3), (third, third - 4)]
    assert lags_of(tmp_path, commits, since_s=1.5) == expected


def test_nothing_is_durable_before_it_is_committed(tmp_path: Path) -> None:
    """Times of files are early by some milliseconds, unless somebody asked for them: a median lag was negative."""
    folder = tmp_path / "eventlog" / "segments"
    folder.mkdir(parents=True)
    commits = []
    for order in range(200):
        commits.append(Commit(time.time(), order))
        manifest = {"checkpoint": {"position": {"order": order}}, "committed_at_us": 0}
        file = os.open(folder / f"{order:03}.json", os.O_CREAT | os.O_WRONLY)  # as open() asks for them
        os.write(file, json.dumps(manifest).encode())
        os.close(file)
    assert min(lag for _, lag in lags_of(tmp_path, commits, since_s=0)) >= 0


def test_the_library_reads_from_where_it_was_made(old_binlog: Database) -> None:
    """It was measured over the whole log of MariaDB once, whatever it was to read."""
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    library = PlainLibrary(scenario_database(old_binlog))
    old_binlog.execute("INSERT INTO t VALUES (4), (5)")
    with closing(library.events()) as events:
        assert next(events) == 2


def test_a_load_that_said_nothing_is_no_figure() -> None:
    seconds = [Second(float(at), 100.0 + at, 2.0) for at in range(10)]
    assert within(seconds, (2.0, 5.5)) == (104.0, 2.0)
    with pytest.raises(MigratorError, match="said nothing"):
        within(seconds, (20.0, 25.0))
