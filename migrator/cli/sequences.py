"""``migrator sequences``: what hands out numbers in the target, made ready for the application."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from migrator.cli.kept import keep, reason_option
from migrator.cli.options import conf_option, config_option, master_option, print_sql, spark_options
from migrator.config import project as configuration
from migrator.errors import ConfigError, readable
from migrator.model.grants import comment
from migrator.model.sequence import Advance
from migrator.wiring import parts as wiring
from migrator.wiring.bad_rows import refuse_hand_over

FORMAT = 1


@click.command()
@config_option
@master_option
@conf_option
@click.option("--apply", "applied", is_flag=True, help="Set those that are behind.")
@reason_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
@click.option("--print", "printed", is_flag=True, help="Print the SQL that would set them, and run nothing.")
@click.option(
    "--margin",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Leave out so many further values.",
)
@click.option(
    "--no-source",
    is_flag=True,
    help="Look at the target's rows only, not at how far the source's own sequences are.",
)
@click.option(
    "--set-aside",
    "named",
    multiple=True,
    metavar="TABLE",
    help="Go on although rows of TABLE are set aside (`migrator rows set-aside`); may be repeated.",
)
def sequences(
    config: Path,
    master: str | None,
    conf: tuple[str, ...],
    applied: bool,
    reason: str,
    as_json: bool,
    printed: bool,
    margin: int,
    no_source: bool,
    named: tuple[str, ...],
) -> int:
    """Set the target's sequences, identity columns and AUTO_INCREMENT counters beyond what is in use.

    Looks at every column of the mapping's target tables, changes nothing without --apply, never moves one
    backwards. May be run beside the run, and again. One that can't be set
    is named; --apply sets the others all the same. It refuses while rows are set aside that nobody dropped or named.
    """
    if printed and (applied or as_json):
        other = "--apply" if applied else "--json"
        raise ConfigError(f"{other} and --print exclude each other", remedy="choose one")
    settings = replace(configuration.load(config), reason=reason)
    if applied:
        refuse_hand_over(settings, named)
    numbers = wiring.target_numbers(settings)
    found = wiring.advances(settings, margin, not no_source, master, spark_options(conf))
    due = [advance for advance in found if advance.moves()]
    failed = [advance for advance in found if advance.problem]
    code = 2 if failed else 1 if due and not applied else 0
    if printed:
        for advance in found:
            moves = advance.moves()
            print_sql(f"{numbers.statement(advance)};" if moves else comment(_line(advance, "ok")))
        return 2 if failed else 0
    if applied:
        numbers.move(due)
        if due:
            keep(settings, "sequences", ", ".join(advance.sequence.name for advance in due))
    if as_json:
        click.echo(json.dumps(document(settings.name, found, applied, code), indent=2))
        return code
    for advance in found:
        click.echo(_line(advance, "set" if applied else "behind"))
        for text in filter(
            None, (advance.note if advance.moves() else "", advance.remedy and f"remedy: {advance.remedy}")
        ):
            click.echo(f"    {text}")
    moved = f"{len(due)} {'set' if applied else 'behind'}"
    click.echo(f"{len(found)} sequence(s): {moved}, {len(failed)} can't be set")
    return code


def document(migration: str, found: Sequence[Advance], applied: bool, exit_code: int) -> dict[str, Any]:
    """The document of `migrator sequences --json` (docs/schemas/sequences.schema.json)."""
    return {
        "format": FORMAT,
        "migration": migration,
        "exit_code": exit_code,
        "sequences": [_entry(advance, applied) for advance in found],
    }


def _entry(advance: Advance, applied: bool) -> dict[str, Any]:
    found = advance.sequence
    moves = advance.moves()
    return {
        "name": found.name,
        "kind": found.kind,
        "columns": [{"table": table, "column": column} for table, column in found.columns],
        "state": "refused" if advance.problem else "ok" if not moves else "set" if applied else "behind",
        "next": found.following,
        "moves_to": advance.following if moves else None,
        "held": found.held,
        "source": advance.source,
        "problem": advance.problem,
        "remedy": readable(advance.remedy),
        "note": advance.note,
    }


def _line(advance: Advance, moves: str) -> str:
    found = advance.sequence
    columns = ", ".join(f"{table}.{column}" for table, column in found.columns)
    head = f"{found.kind} {found.name} ({columns})"
    if advance.problem:
        return f"refused  {head}: {advance.problem}"
    reasons = [f"holds {'nothing' if found.held is None else found.held}"]
    if advance.source is not None:
        reasons.append(f"source at {advance.source}")
    if not advance.moves():
        return f"ok       {head}: next {found.following}; {', '.join(reasons)}"
    return f"{moves:<8} {head}: next {found.following} -> {advance.following}; {', '.join(reasons)}"
