"""``migrator changetables``."""

from __future__ import annotations

from pathlib import Path

import click

from migrator.cli.options import config_option
from migrator.config import project as configuration
from migrator.wiring import parts as wiring


@click.command()
@config_option
def changetables(config: Path) -> None:
    """Print the SQL that makes change tables and their triggers at the source. Runs nothing.

    For a source whose log can't be read (log = "change_tables"). The owner of the tables runs it, once.
    """
    click.echo(wiring.change_table_script(configuration.load(config)), nl=False)
