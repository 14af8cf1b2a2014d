"""``migrator reset``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import click

from migrator.cli.kept import reason_option
from migrator.cli.options import config_option, json_option, print_document
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.errors import RequestError
from migrator.ports.remains import Found
from migrator.run.commands.reset import anything, inventory
from migrator.wiring import reset as wiring
from migrator.wiring.under_cutover import refuse_under_cutover

_DECLINED = 1


class Outcome(Enum):
    """The end that a reset came to."""

    NOTHING = "nothing to remove"
    SHOWN = "shown"
    DONE = "done"


@click.command()
@config_option
@reason_option
@click.option("--table", default=None, metavar="TARGET", help="Start this target table anew, and no other.")
@click.option("--key-maps", is_flag=True, help="Remove key maps, too: old keys get other numbers then.")
@click.option("--yes", is_flag=True, help="Remove what is shown without asking.")
@json_option
def reset(config: Path, reason: str, table: str | None, key_maps: bool, yes: bool, as_json: bool) -> int:
    """Remove everything that the migration made, so that the next run begins as on a new project.

    Shows what it removes on which side, and what it keeps, then asks. Rows of the target tables that the mapping
    makes are removed as well; the source's own tables, and other tables of the target, aren't touched. Killed in
    the middle, it is finished by giving it again; nothing else runs until then.

    With --table only the rows of that target table go, and the next run brings them again. With --json nobody is
    asked: without --yes it only shows.
    """
    if table is not None and key_maps:
        raise click.UsageError("--key-maps doesn't go with --table: several targets share a key map.")
    settings = replace(configuration.load(config), reason=reason)
    refuse_under_cutover(settings, "a reset")
    wiring.refuse_processes(settings)
    if as_json:
        return _whole_json(settings, key_maps, yes) if table is None else _one_json(settings, table, yes)
    return _whole(settings, key_maps, yes) if table is None else _one(settings, table, yes)


def _whole_json(settings: Settings, key_maps: bool, yes: bool) -> int:
    places = wiring.places(settings, key_maps)
    begun, shown = places.state.begun(), inventory(places)
    outcome = _outcome(anything(shown), yes)
    if outcome is Outcome.DONE:
        wiring.reset(settings, places, shown)
    print_document(document(settings.name, shown, outcome) | {"unfinished": begun or ""})
    return _DECLINED if outcome is Outcome.SHOWN else 0


def _one_json(settings: Settings, table: str, yes: bool) -> int:
    shown = wiring.table_plan(settings, table)
    outcome = _outcome(shown.anything(), yes)
    request = wiring.reset_one(settings, shown) if outcome is Outcome.DONE else ""
    rows = () if shown.rows is None else (shown.rows,)
    found = [Found(f"target {settings.target.url()}", rows)] if rows else []
    dumps = [str(one) for one in shown.tables]
    of_table = {"table": table, "dumps": dumps, "request": request}
    print_document(document(settings.name, found, outcome) | of_table)
    return _DECLINED if outcome is Outcome.SHOWN else 0


def _outcome(anything_there: bool, yes: bool) -> Outcome:
    if not anything_there:
        return Outcome.NOTHING
    return Outcome.DONE if yes else Outcome.SHOWN


def document(migration: str, found: Sequence[Found], outcome: Outcome) -> dict[str, Any]:
    """The document of `migrator reset --json` (docs/schemas/reset.schema.json), of a whole migration."""
    places = [
        {
            "place": one.place,
            "removes": [{"kind": left.kind.value, "text": left.said} for left in one.left],
            "keeps": list(one.kept),
        }
        for one in found
    ]
    return {
        "format": 1,
        "migration": migration,
        "outcome": outcome.value,
        "unfinished": "",
        "places": places,
        "table": None,
        "dumps": [],
        "request": "",
    }


def _one(settings: Settings, table: str, yes: bool) -> int:
    shown = wiring.table_plan(settings, table)
    if not shown.anything():
        click.echo(f"{table}: nothing to remove; the next run brings its rows")
        return 0
    if shown.joined:
        click.echo(f"  keeps    rows of {table}, until the next run derives all of them anew from the mirror")
    if shown.rows is not None:
        click.echo(f"  {click.style('removes', fg='red')}  {shown.rows.said}")
    if shown.tables:
        click.echo(f"  dumps    {', '.join(map(str, shown.tables))} again, with the next run")
    if not yes and not _agreed(settings.name):
        click.echo("nothing was removed")
        return _DECLINED
    request = wiring.reset_one(settings, shown)
    click.echo(
        f"{table}: the next `migrator run` fills it anew{f' (dump request {request})' if request else ''}"
    )
    return 0


def _whole(settings: Settings, key_maps: bool, yes: bool) -> int:
    places = wiring.places(settings, key_maps)
    if begun := places.state.begun():
        click.echo(f"a reset isn't finished yet ({begun}): this is what is left")
    shown = inventory(places)
    _show(shown)
    if not anything(shown):
        click.echo(f"migration {settings.name}: nothing to remove")
        return 0
    if not yes and not _agreed(settings.name):
        click.echo("nothing was removed")
        return _DECLINED
    for place, left in wiring.reset(settings, places, shown):
        click.echo(f"removed  {left.said} ({place.split(' ')[0]})")
    click.echo(f"migration {settings.name}: the next `migrator run` begins anew")
    return 0


def _show(found: Sequence[Found]) -> None:
    for one in found:
        if one.left or one.kept:
            click.echo(one.place)
        for left in one.left:
            click.echo(f"  {click.style('removes', fg='red')}  {left.said}")
        for kept in one.kept:
            click.echo(f"  keeps    {kept}")


def _agreed(name: str) -> bool:
    """Asks. Raises ``RequestError`` where nobody can answer."""
    if not sys.stdin.isatty():
        raise RequestError(
            "nobody can be asked whether to remove this",
            where=f"migration {name}",
            cause="standard input is not a terminal",
            remedy="read what is shown, then: migrator reset --yes",
        )
    return click.confirm("Do this?", default=False)
