"""``migrator remap``: derives a joined target anew from the mirror."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from migrator.cli.kept import reason_option
from migrator.cli.options import config_option
from migrator.config import project as configuration
from migrator.wiring.remap import remap as remapped


@click.command()
@config_option
@reason_option
@click.argument("table")
def remap(config: Path, reason: str, table: str) -> None:
    """Have a joined target TABLE derived anew from the mirror, after its mapping was changed.

    The source isn't read. The run does it with its next batch, in one transaction: readers see all rows of before,
    then all rows anew. Stop the run before the mapping is changed: one that leads maps by what it has loaded.
    """
    done = remapped(replace(configuration.load(config), reason=reason), table)
    if not done.filled:
        click.echo(f"{table}: not filled yet; it will be once the tables it reads are dumped")
        return
    click.echo(f"{table}: derived anew from the mirror with the run's next batch")
    click.echo(
        f"its table takes {done.bytes / 1e6:,.1f} MB now: the target needs about as much again, until the server has"
        " cleaned up the rows of before"
    )
    if done.leader:
        click.echo(
            f"{done.leader} leads, and maps by the mapping that it has loaded: if that was changed since, stop the"
            " run, give this command again, then start"
        )
