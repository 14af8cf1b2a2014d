"""The first line of a command that takes seconds: before its module is imported, and for such commands alone."""

from __future__ import annotations

import click
import pytest

from migrator.cli import cli, phases
from migrator.cli.phases import say_first


@pytest.mark.parametrize("arguments", [["run", "--plain"], ["verify"], ["cutover", "start"]])
def test_a_slow_command_says_that_it_begins(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    say_first(arguments)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.endswith(f"{arguments[0]}: starting\n")


def test_every_command_says_soon_that_it_begins_or_has_ended_by_then() -> None:
    names = set(cli.list_commands(click.Context(cli)))
    assert names - {*phases._SLOW, *phases._AT_THE_END} == {"docs"}, "it reads one file"
    assert not set(phases._SLOW) & set(phases._AT_THE_END)
    assert phases.SOON_S < 1


def test_a_command_that_prints_at_its_end_says_that_it_begins_where_that_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phases, "SOON_S", 0.01)
    later = say_first(["status", "--json"])
    assert later is not None
    later.join()
    out, err = capsys.readouterr()
    assert (out, err.endswith("status: starting\n")) == ("", True)
    monkeypatch.setattr(phases, "SOON_S", 60.0)
    later = say_first(["status"])
    assert later is not None
    later.cancel()
    later.join()
    assert capsys.readouterr() == ("", ""), "it ended before"
    assert say_first(["status", "--watch"]) is None
    assert capsys.readouterr().err.count("\n") == 1, "it has no end"


@pytest.mark.parametrize("arguments", [[], ["--version"], ["docs"], ["run", "--help"], ["verify", "-h"]])
def test_others_say_nothing(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    say_first(arguments)
    assert capsys.readouterr() == ("", "")
