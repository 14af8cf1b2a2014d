"""``migrator remap``: derives a joined target anew from the mirror."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from migrator.cli.kept import reason_option
from migrator.cli.options import config_option
from migrator.config import project as configuration
from migrator.wiring import parts as wiring


@click.command()
@config_option
@reason_option
@click.argument("table")
def remap(config: Path, reason: str, table: str) -> None:
    """Have a joined target TABLE derived anew from the mirror, after its mapping was changed.

    The source isn't read. The run does it with its next batch, in one transaction: start it again first if the
    mapping file was changed while it ran.
    """
    if wiring.remap(replace(configuration.load(config), reason=reason), table):
        click.echo(f"{table}: derived anew from the mirror with the run's next batch")
    else:
        click.echo(f"{table}: not filled yet; it will be once the tables it reads are dumped")
