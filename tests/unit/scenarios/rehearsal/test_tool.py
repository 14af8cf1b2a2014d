"""The commands of a rehearsal: what they print, and what they say beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.errors import MigratorError
from scenarios.rehearsal import tool as commands
from scenarios.rehearsal.tool import Tool

Made = Callable[[int], Tool]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Made:
    """Makes a tool whose command says that it starts, prints JSON, and ends with a code."""

    def made(code: int) -> Tool:
        said = f"import sys; print('starting', file=sys.stderr); print('{{\"a\": 1}}'); sys.exit({code})"
        monkeypatch.setattr(commands, "python_m", lambda module: [sys.executable, "-c", said])
        return Tool(tmp_path / "migration.toml", tmp_path / "run.log")

    return made


def test_what_a_command_says_beside_its_json_is_no_part_of_it(tool: Made) -> None:
    """Without that, no switch of a rehearsal could be read: ``cutover`` says a first line at once."""
    assert tool(0).document("cutover", "status") == {"a": 1}
    assert "starting" in tool(0).command("cutover", "status", "--json").text


def test_a_command_that_fails_has_all_that_it_said(tool: Made) -> None:
    with pytest.raises(MigratorError) as failed:
        tool(2).document("cutover", "status")
    assert "starting" in failed.value.cause
    assert failed.value.where == "exit code 2"
