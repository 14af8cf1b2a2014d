"""Every command speaks JSON, or says here why it doesn't: a new one is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from migrator.cli import cli

_REPORT = "tries the tool itself out: its report is a page of its own"
_A_FILE = "writes a file whose format is documented, and prints where"
SILENT = {
    "bench": _REPORT,
    "capturebench": _REPORT,
    "demo": _REPORT,
    "docs": "prints a page, or the names of all, one a line",
    "events": "what it writes are JSON lines (docs/reference/events.md)",
    "incident add": _A_FILE,
    "incident anonymise": _A_FILE,
    "incident collect": _A_FILE,
    "incident replay": "tells by its exit code; its bundle has the rest (docs/reference/formats/bundle-formats.md)",
    "incident shrink": _A_FILE,
    "playground": _REPORT,
    "run": "never ends by itself: --log-format json, and [observe] listen with /live.json",
    "scenario code-mutants": _REPORT,
    "scenario list": "prints names, one a line",
    "scenario mutants": _REPORT,
    "scenario replay": _REPORT,
    "scenario run": _REPORT,
    "scenario simulate": _REPORT,
    "scenario soak": _REPORT,
    "scenario torture": _REPORT,
    "story": _REPORT,
    "verifybench": _REPORT,
}
"""Commands without ``--json``, each with the reason."""


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """The commands that can be called, by their words."""
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*words, name))


def speaks(command: click.Command) -> bool:
    options = [one for one in command.params if isinstance(one, click.Option) and one.is_flag]
    return any("--json" in one.opts for one in options)


def mute(top: click.Command) -> set[str]:
    return {words for words, command in leaves(top) if not speaks(command)}


def test_each_command_speaks_json_or_stands_in_the_list_with_its_reason() -> None:
    assert mute(cli) == set(SILENT)


def test_a_new_command_without_it_is_noticed() -> None:
    @click.group()
    def top() -> None: ...

    @top.command()
    def new() -> None: ...

    @top.command("spoken")
    @click.option("--json", is_flag=True)
    def spoken() -> None: ...

    @top.command("filed")
    @click.option("--json")
    def filed() -> None: ...

    assert mute(top) == {"new", "filed"}, "a --json that takes a file's name isn't what is meant"


def test_init_says_in_its_document_what_it_wrote_and_nothing_else(tmp_path: Path) -> None:
    plain = CliRunner().invoke(cli, ["init", str(tmp_path / "one")], catch_exceptions=False)
    spoken = CliRunner().invoke(cli, ["init", str(tmp_path / "two"), "--json"], catch_exceptions=False)
    found = json.loads(spoken.stdout)
    assert found["migration"] == "two"
    written = [str(file) for file in (tmp_path / "two").rglob("*") if file.is_file()]
    assert sorted(one["path"] for one in found["files"]) == sorted(written)
    lines = [f"{one['done']} {one['path']}" for one in found["files"]] + [f"next: {found['next']}"]
    assert plain.stdout == "\n".join(lines).replace("/two", "/one") + "\n"
    again = CliRunner().invoke(cli, ["init", str(tmp_path / "two"), "--json"])
    assert (again.stdout, again.exception is not None) == ("", True)
