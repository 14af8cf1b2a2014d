"""``migrator scenario mutate-mapping``: which of a project's own tests and checks notice a broken mapping."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from migrator.cli.options import config_option
from migrator.embedded.process import scratch_directory
from migrator.errors import ConfigError
from scenarios.mutants.of_mappings import MappingMutant, mapping_mutants, survivors

_LONGEST_S = 900.0
_TESTS = "python -m pytest -q -x"
FORMAT = 1
Row = tuple[MappingMutant, list[bool]]


@click.command()
@config_option
@click.option(
    "--judge",
    "judges",
    multiple=True,
    help="A command, run in a copy of the project; it notices by an exit code other than 0. Several: repeat it."
    f"  [default: {_TESTS}]",
)
@click.option("--most", type=click.IntRange(1), help="Try the first so many broken variants only.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Time budget: no further broken variant is begun after so many minutes; those left are named.",
)
@click.option("--json", "as_json", is_flag=True, help="The table as JSON on standard output.")
def mutate_mapping(
    config: Path, judges: tuple[str, ...], most: int | None, minutes: float | None, as_json: bool
) -> int:
    """Break the project's mapping, one small fault at a time, and see which of its tests and checks notice.

    Drops filters, columns and join conditions, widens grains and groups, swaps columns. Works in a copy of the
    project; a judge that connects to servers (`migrator check`, `migrator verify`) uses those that the settings name.
    Exit codes: 0 every variant was noticed, 1 some were not, 2 error, 3 none survived, but not all were tried.
    """
    words = judges or (_TESTS,)
    mapping = _mapping(config)
    found = mapping_mutants(mapping.read_text())
    ends = None if minutes is None else time.monotonic() + minutes * 60
    with scratch_directory("migrator-mutants-") as folder:
        copy = folder / "project"
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".scenarios", ".migrator")
        shutil.copytree(config.parent, copy, ignore=ignored, symlinks=True)
        broken = copy / mapping.relative_to(config.parent)
        for judge in words:
            if said := _notices(judge, copy):
                raise ConfigError(
                    "a judge refuses the mapping as it is",
                    where=judge,
                    cause=said,
                    remedy="correct the project until it passes, or leave the judge out",
                )
        table: list[Row] = []
        for mutant in found[:most]:
            if ends is not None and time.monotonic() > ends:
                break
            broken.write_text(mutant.source)
            table.append((mutant, [bool(_notices(judge, copy)) for judge in words]))
            click.echo(_line(table[-1], words), err=as_json)
    return _ended(table, found[len(table) :], words, as_json)


def _ended(
    table: Sequence[Row], untried: Sequence[MappingMutant], judges: Sequence[str], as_json: bool
) -> int:
    left = survivors(table)
    for mutant in untried:
        click.echo(f"unknown   {mutant.name}  not tried", err=as_json)
    if as_json:
        click.echo(json.dumps(document(table, judges, untried), indent=2))
    else:
        more = f"; {len(untried)} were not tried" if untried else ""
        click.echo(f"{len(table) - len(left)} of {len(table)} broken mappings were noticed{more}")
    return 1 if left else 3 if untried or not table else 0


def document(
    table: Sequence[Row], judges: Sequence[str], untried: Sequence[MappingMutant] = ()
) -> dict[str, Any]:
    """The document of `migrator scenario mutate-mapping --json` (docs/schemas/kill-table.schema.json)."""
    mutants = [{**_said(mutant), "noticed_by": _by(noticed, judges)} for mutant, noticed in table]
    return {
        "format": FORMAT,
        "judges": list(judges),
        "mutants": mutants,
        "not_tried": [_said(mutant) for mutant in untried],
    }


def _said(mutant: MappingMutant) -> dict[str, Any]:
    return {"target": mutant.target, "line": mutant.line, "fault": mutant.fault}


def _by(noticed: Sequence[bool], judges: Sequence[str]) -> list[str]:
    return [judge for judge, seen in zip(judges, noticed, strict=True) if seen]


def _line(row: Row, judges: Sequence[str]) -> str:
    mutant, noticed = row
    by = _by(noticed, judges)
    return f"{'noticed ' if by else 'SURVIVED'}  {mutant.name}{'  by ' + ', '.join(by) if by else ''}"


def _mapping(config: Path) -> Path:
    try:
        document = tomllib.loads(config.read_text())
        mapping = config.parent / str(document.get("migration", {}).get("mapping", "mapping.py"))
        mapping_mutants(mapping.read_text())
    except (OSError, tomllib.TOMLDecodeError, SyntaxError) as error:
        raise ConfigError(
            "the project's mapping can't be read",
            where=str(config),
            cause=str(error),
            remedy="run the command in a migration project's folder, or name its file with --config",
        ) from error
    return mapping


def _notices(judge: str, folder: Path) -> str:
    """The last words of a judge that doesn't pass; empty for one that does."""
    command = shlex.split(judge)
    if command[0] in ("python", "migrator"):  # those that run this command
        command[:1] = [sys.executable] if command[0] == "python" else [sys.executable, "-m", "migrator"]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=_LONGEST_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"no answer within {_LONGEST_S:g} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return (
        ""
        if done.returncode == 0
        else "\n".join(done.stdout.splitlines()[-5:]) or f"exit code {done.returncode}"
    )
