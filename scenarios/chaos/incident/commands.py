"""``migrator incident``: collect, anonymise, replay, shrink, add."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from migrator.cli.options import config_option
from migrator.errors import ConfigError

if TYPE_CHECKING:
    from scenarios.chaos.incident.history import History

_KEYS = re.compile(r"(?P<table>[^:]+):(?P<key>.+)", re.DOTALL)
_EXPECTED = re.compile(r"(?P<target>[^:]+):(?P<key>[^:]+):(?P<column>[^=:]+)=(?P<value>.*)", re.DOTALL)
_LSN = re.compile(r"([0-9A-Fa-f]+)/([0-9A-Fa-f]+)")
_MOST_ROWS = 5_000
_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_OUT = click.Path(path_type=Path, dir_okay=False)


def _treatments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that say how columns are anonymised."""
    for option in (
        click.option(
            "--treat",
            multiple=True,
            metavar="TABLE.COLUMN=KIND",
            help="Treat a column as key, text, number, date, time, bytes, json, uuid, blank, keep. May be repeated.",
        ),
        click.option(
            "--keep",
            multiple=True,
            metavar="TABLE.COLUMN",
            help="Leave a column as it is where others are anonymised. May be repeated.",
        ),
    ):
        command = option(command)
    return command


@click.group()
def incident() -> None:
    """Put what went wrong into one file, replay it on throw-away servers, shrink it, and keep it as a test."""


@incident.command()
@config_option
@click.option(
    "--keys",
    multiple=True,
    metavar="TABLE:KEY",
    help="A row of the old side with its neighbours by foreign keys; values of a key apart by commas; repeatable.",
)
@click.option(
    "--around",
    default=None,
    metavar="POSITION",
    help="The 200 transactions before and after a place in the log.",
)
@click.option("--halted", default="", metavar="TEXT", help="The named error with which the run stopped.")
@click.option(
    "--expect",
    multiple=True,
    metavar="TARGET:KEY:COLUMN=VALUE",
    help="A value that a row of the new side should have, whatever the mapping says. May be repeated.",
)
@click.option(
    "--most-rows",
    default=_MOST_ROWS,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="Rows of the old side at most.",
)
@click.option("--anonymise", is_flag=True, help="Replace all values by pseudonyms of the same form.")
@_treatments
@click.option("-o", "--output", required=True, type=_OUT, help="The file to write.")
def collect(
    config: Path,
    keys: tuple[str, ...],
    around: str | None,
    halted: str,
    expect: tuple[str, ...],
    most_rows: int,
    anonymise: bool,
    keep: tuple[str, ...],
    treat: tuple[str, ...],
    output: Path,
) -> None:
    """Write one file with the rows, changes, structure, mapping, settings without secrets and the last verdict.

    Works beside a run, without one, and without the source: what can't be had is named.
    """
    from scenarios.chaos.incident.collect import Wish, collected
    from scenarios.chaos.incident.incident_file import packed
    from scenarios.chaos.incident.pseudonyms.treatment import wishes

    if (keep or treat) and not anonymise:
        raise ConfigError("--keep and --treat say how to anonymise", remedy="give --anonymise as well")
    if keys and around is not None:
        raise ConfigError("--keys and --around can't be combined", remedy="give one of them")
    wish = Wish(
        tuple(map(_row, keys)), None if around is None else _position(around), most_rows, anonymise,
        wishes(keep, treat), halted, tuple(map(_expected, expect)),
    )  # fmt: skip
    found = collected(config, wish)
    _write(output, packed(found))
    for one in found.facts["missing"]:
        click.echo(f"not there: {one['part']}: {one['why']}")
    for left in found.facts["left_out"]:
        click.echo(f"left out: {left}")
    for line in found.failure.lines():
        click.echo(f"failure: {line}")
    if anonymise:
        _say_treatments(found.facts)
    _say_size(output, found.history)


@incident.command()
@click.argument("file", type=_FILE)
@click.option(
    "--project",
    default=None,
    type=click.Path(path_type=Path, exists=True),
    help="Take the mapping and the revisions of this project (its folder or its migration.toml), not the file's.",
)
def replay(file: Path, project: Path | None) -> int:
    """Rebuild the old side on throw-away servers, run the migration over its history, and compare."""
    from scenarios.chaos.incident.failure import EXIT_CODES
    from scenarios.chaos.incident.incident_file import unpacked
    from scenarios.chaos.incident.replay import replay as replayed

    found = replayed(unpacked(file), _config(project), lambda said: click.echo(f"    {said}"))
    for line in found.found.lines():
        click.echo(line)
    click.echo(f"{found.judgement.value}: {found.reason}")
    return EXIT_CODES[found.judgement]


@incident.command()
@click.argument("file", type=_FILE)
@click.option("-o", "--output", required=True, type=_OUT, help="The file to write.")
@click.option(
    "--minutes",
    default=20.0,
    show_default=True,
    type=click.FloatRange(min=0.0, min_open=True),
    help="Time to try.",
)
def shrink(file: Path, output: Path, minutes: float) -> int:
    """Take out transactions, rows and columns for as long as a replay shows the same failure."""
    from scenarios.chaos.incident.incident_file import packed, unpacked
    from scenarios.chaos.incident.shrink import shrunk

    found = shrunk(unpacked(file), minutes * 60, lambda said: click.echo(f"    {said}"))
    if found is None:
        click.echo("unknown: the failure isn't reproduced, so nothing can be taken out")
        return 3
    _write(output, packed(found))
    _say_size(output, found.history)
    return 0


@incident.command()
@click.argument("file", type=_FILE)
@_treatments
@click.option("-o", "--output", required=True, type=_OUT, help="The file to write.")
def anonymise(file: Path, keep: tuple[str, ...], treat: tuple[str, ...], output: Path) -> None:
    """Replace all values of a file by pseudonyms of the same form; `collect --anonymise` does so at once."""
    from scenarios.chaos.incident.anonymised import anonymised
    from scenarios.chaos.incident.incident_file import packed, unpacked
    from scenarios.chaos.incident.pseudonyms.treatment import wishes

    found = anonymised(unpacked(file), wishes(keep, treat))
    _write(output, packed(found))
    _say_treatments(found.facts)
    _say_size(output, found.history)


@incident.command()
@click.argument("file", type=_FILE)
@click.option(
    "--to",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The project's tests.",
)
@click.option("--name", default="", help="Name of the test; that of the file by default.")
def add(file: Path, folder: Path, name: str) -> None:
    """Write a test of the project that replays the file, and fails until the fault is mended."""
    from scenarios.chaos.incident.added_test import added

    test, copy = added(file, folder, name)
    click.echo(f"wrote {test} and {copy}; run it with `pytest {test}`")


def _say_treatments(facts: Mapping[str, Any]) -> None:
    for one in facts["treatments"]:
        click.echo(f"{one['column']}: {one['treatment']} ({one['why']})")
    for place, values in facts["kept"].items():
        click.echo(f"kept: {len(values)} value(s) of {place}")
    for place, number in facts["no_room"].items():
        click.echo(
            f"no room for others: {number} value(s) of {place} have themselves or another row's as pseudonym"
        )


def _say_size(output: Path, history: History) -> None:
    rows = sum(map(len, history.start.values()))
    click.echo(
        f"{output}: {rows} rows, {len(history.transactions)} transactions, {output.stat().st_size:,} bytes"
    )


def _row(text: str) -> tuple[str, tuple[str, ...]]:
    found = _KEYS.fullmatch(text)
    if found is None:
        raise ConfigError("this names no row", where=f"--keys {text}", remedy="write TABLE:VALUE[,VALUE...]")
    return found["table"], tuple(found["key"].split(","))


def _expected(text: str) -> tuple[str, tuple[str, ...], str, str]:
    found = _EXPECTED.fullmatch(text)
    if found is None:
        raise ConfigError(
            "this expects nothing", where=f"--expect {text}", remedy="write TARGET:KEY[,KEY...]:COLUMN=VALUE"
        )
    return found["target"], tuple(found["key"].split(",")), found["column"], found["value"]


def _position(text: str) -> int:
    if lsn := _LSN.fullmatch(text):
        return (int(lsn[1], 16) << 32) + int(lsn[2], 16)
    if not text.isdigit():
        raise ConfigError(
            "this is no position",
            where=f"--around {text}",
            remedy="give the number that the ledger and `log/segments.json` of an incident have, or an LSN",
        )
    return int(text)


def _config(project: Path | None) -> Path | None:
    return project / "migration.toml" if project is not None and project.is_dir() else project


def _write(output: Path, content: bytes) -> None:
    """Writes a file for this user only: it has rows."""
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
