"""The log of runs: lines that stay lines, files that stay bounded, for this user alone."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_json_holds_nothing_that_ends_a_line_or_speaks_to_a_terminal(tmp_path: Path) -> None:
    words = "".join(map(chr, [*range(0xA1), 0x2028, 0x2029, 0x202E, 0xE0001, 0x1F600])) + '\ud800ä"\\'
    RunLog(tmp_path, "json", 1 << 20, "shop")(AT_US, Happening("run.note", words, about="t\u2028\x9b31m"))
    text = (tmp_path / "run.log").read_text("utf-8")
    assert text[:-1].isprintable()
    assert "ä" in text, "what prints stays as it is"
    (line,) = text.splitlines()
    found = json.loads(line)
    assert found["words"] == words.replace("\ud800", "?")
    assert found["about"] == "t\u2028\x9b31m"


def lines_behind(tmp_path: Path, left: bytes) -> list[dict[str, object]]:
    """The log after two more events, behind what is in the file already."""
    path = tmp_path / "run.log"
    path.write_bytes(left)
    log = RunLog(tmp_path, "json", 1 << 20, "shop")
    for word in ("one", "two"):
        log(AT_US, Happening("run.note", word))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("torn", [b"{", b'{"words": "torn', b'{"words": "' + b"x" * 200_000])
@pytest.mark.parametrize("whole", [b"", b'{"words": "zero"}\n'])
def test_what_is_left_of_a_line_goes(tmp_path: Path, whole: bytes, torn: bytes) -> None:
    """A kill or a full disk within a line; the next event used to stand behind it, on the same line."""
    found = [line["words"] for line in lines_behind(tmp_path, whole + torn)]
    assert found == [*(["zero"] if whole else []), "one", "two"]
    assert [line["words"] for line in lines_behind(tmp_path, whole)] == found, "control: nothing torn"


def test_a_disk_that_takes_half_a_line_keeps_none_of_it(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
from migrator.adapters.observers.run_log import RunLog
from migrator.model.observed.happening import Happening
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
log = RunLog(Path(sys.argv[1]), "json", 1 << 20, "shop")
resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))
for number in range(9):
    log(1_795_991_829_350_475, Happening("run.note", str(number) * 50))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log(1_795_991_829_350_475, Happening("run.note", "room"))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=Path(__file__).parents[3])
    text = (tmp_path / "run.log").read_text("utf-8")
    words = [json.loads(line)["words"] for line in text.splitlines()]
    assert 2 <= len(words) < 10, "some were left out"
    assert words == [*(str(number) * 50 for number in range(len(words) - 1)), "room"]


def test_a_kill_while_files_move_on_costs_none(tmp_path: Path) -> None:
    log = RunLog(tmp_path, "text", 100, "shop")
    for number in range(KEPT + 1):
        log(AT_US, Happening("run.note", f"number {number} {'x' * 40}"))
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"run.log", *(f"run.log.{number}" for number in range(1, KEPT + 1))}
    (tmp_path / f"run.log.{KEPT}").unlink()
    (tmp_path / "run.log.3").replace(tmp_path / f"run.log.{KEPT}")  # as if the kill came before 2 was moved
    before = (tmp_path / f"run.log.{KEPT}").read_bytes()
    log(AT_US, Happening("run.note", f"number 99 {'x' * 40}"))
    assert (tmp_path / f"run.log.{KEPT}").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == files


WRITER = """
import sys
from pathlib import Path
from migrator.adapters.observers.run_log import RunLog
from migrator.model.observed.happening import Happening
log = RunLog(Path(sys.argv[1]), "json", 8000, "shop")
for number in range(100):
    log(1_795_991_829_350_475, Happening("run.note", f"{sys.argv[2]} {number}"))
"""


def test_two_processes_lose_nothing_to_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    both = [subprocess.Popen([*command, name], cwd=Path(__file__).parents[3]) for name in "ab"]
    assert [one.wait(120) for one in both] == [0, 0]
    texts = [path.read_text("utf-8") for path in tmp_path.iterdir()]
    found = [json.loads(line)["words"] for text in texts for line in text.splitlines()]
    assert sorted(found) == sorted(f"{name} {number}" for name in "ab" for number in range(100))
    assert all(len(text) <= 8000 for text in texts)
    assert sum(len(text) > 7000 for text in texts) == len(texts) - 1, "each was full before it moved on"


def test_one_that_was_halted_keeps_nobody_from_the_log(tmp_path: Path) -> None:
    halted = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(halted, fcntl.LOCK_EX)
    RunLog(tmp_path, "text", 1 << 20, "shop")(AT_US, Happening("run.note", "on it goes"))
    os.close(halted)
    assert "on it goes" in (tmp_path / "run.log").read_text("utf-8")


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
