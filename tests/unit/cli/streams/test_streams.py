"""What a command says where nobody reads it, where there is no room for it, and where a terminal might obey it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from migrator.cli.group.streams import NOBODY_READS, for_terminal

NOWHERE = subprocess.DEVNULL
SAYS = """
import sys
from migrator.cli.group import streams
streams.put_in_place()
print(sys.argv[1])
"""
HOSTILE = "a\x1b]0;title\x07b\x1b[2Jc\x9bd\u202ee\rf"
HARMLESS = r"a\x1b]0;title\x07b\x1b[2Jc\x9bd\u202ee\rf"


def migrator(*arguments: str, stdout: IO[bytes] | int, stderr: IO[bytes] | int) -> tuple[int, str]:
    """Runs a command that needs no server, to its end: its exit code, and what it said where ``stderr`` is a pipe."""
    ended = subprocess.run(
        [sys.executable, "-m", "migrator", *arguments], check=False, timeout=120, stdout=stdout, stderr=stderr
    )
    return ended.returncode, (ended.stderr or b"").decode()


def without_reader(*arguments: str) -> int:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        return migrator(*arguments, stdout=writes, stderr=NOWHERE)[0]
    finally:
        os.close(writes)


def test_a_reader_that_has_gone_is_no_verdict() -> None:
    assert without_reader("docs", "how-to") == NOBODY_READS
    assert without_reader("--help") == NOBODY_READS, "what click prints by itself, too"
    assert migrator("docs", "how-to", stdout=NOWHERE, stderr=NOWHERE)[0] == 0, "the control"


def test_a_full_disk_is_named_and_no_fault_of_the_tool() -> None:
    with open("/dev/full", "wb") as full:
        code, said = migrator("docs", "how-to", stdout=full, stderr=subprocess.PIPE)
    assert code == 2
    assert said.splitlines()[:2] == [
        "error: standard output can't be written",
        "  cause: No space left on device",
    ]
    assert "Traceback" not in said


def test_nothing_ends_by_what_standard_error_cannot_take(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        assert migrator("docs", "how-to", stdout=NOWHERE, stderr=full)[0] == 0
        code, _ = migrator("status", "--config", str(tmp_path / "none"), stdout=NOWHERE, stderr=full)
    assert code == 2, "the error that it can't say"


def test_a_terminal_obeys_nothing_that_is_printed_and_a_file_gets_it_as_it_is() -> None:
    said = [sys.executable, "-c", SAYS, HOSTILE]
    here, there = pty.openpty()
    try:
        subprocess.run(said, check=True, stdout=there, timeout=60)
        assert os.read(here, 4096).decode().strip() == HARMLESS
    finally:
        os.close(here)
        os.close(there)
    written = subprocess.run(said, check=True, stdout=subprocess.PIPE, timeout=60).stdout
    assert written.decode() == f"{HOSTILE}\n"


@pytest.mark.parametrize(
    "text", ["plain", "a\nb\tc", "\x1b[31mred\x1b[0m", "\x1b[1;31mboth\x1b[0m", "größer 😀"]
)
def test_what_harms_nobody_stays(text: str) -> None:
    assert for_terminal(text) == text
