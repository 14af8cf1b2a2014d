"""The first line of a command that takes seconds: before its module is imported, and for such commands alone."""

from __future__ import annotations

import pytest

from migrator.cli.phases import say_first


@pytest.mark.parametrize("arguments", [["run", "--plain"], ["verify"], ["cutover", "start"]])
def test_a_slow_command_says_that_it_begins(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    say_first(arguments)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.endswith(f"{arguments[0]}: starting\n")


@pytest.mark.parametrize("arguments", [[], ["--version"], ["status"], ["run", "--help"], ["verify", "-h"]])
def test_others_say_nothing(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    say_first(arguments)
    assert capsys.readouterr() == ("", "")
