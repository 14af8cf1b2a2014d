"""``migrator reset``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from migrator.cli.kept import reason_option
from migrator.cli.options import config_option
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.errors import RequestError
from migrator.ports.remains import Found
from migrator.run.commands.reset import anything, inventory
from migrator.wiring import reset as wiring
from migrator.wiring.under_cutover import refuse_under_cutover

_DECLINED = 1


@click.command()
@config_option
@reason_option
@click.option("--table", default=None, metavar="TARGET", help="Start this target table anew, and no other.")
@click.option("--key-maps", is_flag=True, help="Remove key maps, too: old keys get other numbers then.")
@click.option("--yes", is_flag=True, help="Remove what is shown without asking.")
def reset(config: Path, reason: str, table: str | None, key_maps: bool, yes: bool) -> int:
    """Remove everything that the migration made, so that the next run begins as on a new project.

    Shows what it removes on which side, and what it keeps, then asks. Rows of the target tables that the mapping
    makes are removed as well; the source's own tables, and other tables of the target, aren't touched. Killed in
    the middle, it is finished by giving it again; nothing else runs until then.

    With --table only the rows of that target table go, and the next run brings them again.
    """
    if table is not None and key_maps:
        raise click.UsageError("--key-maps doesn't go with --table: several targets share a key map.")
    settings = replace(configuration.load(config), reason=reason)
    refuse_under_cutover(settings, "a reset")
    wiring.refuse_processes(settings)
    return _whole(settings, key_maps, yes) if table is None else _one(settings, table, yes)


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
