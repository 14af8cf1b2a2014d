"""``migrator grants``."""

from __future__ import annotations

from pathlib import Path

import click

from migrator import config as configuration
from migrator import wiring
from migrator.cli.options import config_option


@click.command()
@config_option
@click.option(
    "--print", "printed", is_flag=True, required=True, help="Print the SQL; the only thing it can do."
)
@click.option("--side", type=click.Choice(["source", "target"]), help="One side only. Default: both.")
def grants(config: Path, printed: bool, side: str | None) -> None:
    """Print the SQL that gives both logins the rights that this configuration needs, and no others.

    Runs nothing and connects to nothing. An administrator reads it and runs it on each server.
    """
    scripts = dict(zip(("source", "target"), wiring.grants(configuration.load(config)), strict=True))
    wanted = [script.text() for name, script in scripts.items() if printed and side in (None, name)]
    click.echo("\n".join(wanted), nl=False)
