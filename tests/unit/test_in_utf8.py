"""Text beyond ASCII on the command line stays what it is under any locale, or is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("-m", "migrator")
WITHOUT = ("-c", "from migrator.cli import cli; cli.main(standalone_mode=False)")
"""The same command, not begun in UTF-8."""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def _said(config: bytes, surroundings: Mapping[str, str], command: tuple[str, ...] = OURS) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *command, "check", "--config", config],
        env={**os.environ, "PYTHONPATH": str(ROOT), **surroundings},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("surroundings", [ASCII, {"LC_ALL": "C"}, {"PYTHONIOENCODING": "utf-8"}])
def test_a_name_with_an_umlaut_is_read_and_printed_whole(surroundings: dict[str, str]) -> None:
    code, said = _said("/nowhere/prüf.toml".encode(), surroundings)
    assert code == 2
    assert "error: /nowhere/prüf.toml can't be read" in said


def test_begun_otherwise_it_would_not_be() -> None:
    """The negative control."""
    assert "prüf" not in _said("/nowhere/prüf.toml".encode(), ASCII, WITHOUT)[1]


def test_what_can_t_be_printed_is_escaped() -> None:
    code, said = _said("/nowhere/prüf.toml".encode(), {"PYTHONIOENCODING": "ascii:strict"})
    assert code == 2
    assert "Traceback" not in said
    assert "can't be read" in said


def test_an_argument_in_another_encoding_is_refused_by_name() -> None:
    code, said = _said(b"/nowhere/pr\xfcf.toml", {"LC_ALL": "C"})
    assert code == 2
    assert "an argument of the command is not UTF-8" in said
    assert r"pr\xfcf" in said
