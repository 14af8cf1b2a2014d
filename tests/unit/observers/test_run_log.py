"""The log of runs: lines that stay lines, files that stay bounded, for this user alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

from migrator.adapters.hooks.events import told_of
from migrator.adapters.observers.run_log import KEPT, RunLog, document
from migrator.model.observed.happening import Happening

AT_US = 1_795_991_829_350_475
HOSTILE = Happening("run.warning", "a\n2026 forged \x1b[31m \ud800 ä", "warning", 'b"\n\0')


def test_a_line_is_a_line_whatever_it_holds(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "state", "text", 1 << 20, "shop")
    log(AT_US, HOSTILE)
    log(AT_US, Happening("run.phase", "streaming"))
    first, second = (tmp_path / "state" / "run.log").read_text("utf-8").splitlines()
    assert re.fullmatch(r"2026-11-29T\d\d:\d\d:\d\d\.350Z info    \d+ run\.phase streaming", second)
    assert "\\x1b" in first
    assert (tmp_path / "state" / "run.log").stat().st_mode & 0o777 == 0o600


def test_as_json_each_line_is_the_document(tmp_path: Path) -> None:
    RunLog(tmp_path, "json", 1 << 20, "shop")(AT_US, Happening("run.phase", "a\nb"))
    (line,) = (tmp_path / "run.log").read_text("utf-8").splitlines()
    assert json.loads(line) == document("shop", AT_US, Happening("run.phase", "a\nb"))


def test_files_follow_each_other_and_are_bounded(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "text", 1000, "shop")
    for number in range(200):
        log(AT_US, Happening("run.note", f"number {number} {'x' * 40}"))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["run.log", *(f"run.log.{number}" for number in range(1, KEPT + 1))]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in files)
    assert "number 199" in (tmp_path / "run.log").read_text()


def test_a_disk_that_takes_nothing_ends_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    RunLog(tmp_path / "file", "text", 1000, "shop")(AT_US, Happening("run.note", "x"))


def test_a_command_is_told_by_its_input_and_its_variables(tmp_path: Path) -> None:
    there = tmp_path / "told"
    told_by = document("shop", AT_US, HOSTILE)
    assert told_of(f'cat > {there}; printf "%s" "$MIGRATOR_EVENT" > {there}.event', told_by) == ""
    assert json.loads(there.read_text("utf-8")) == told_by
    assert (tmp_path / "told.event").read_text() == "run.warning"
    assert "exit code 3" in told_of("echo no >&2; exit 3", told_by)
    assert told_of("http://127.0.0.1:1/x", told_by).startswith("it can't be asked")
