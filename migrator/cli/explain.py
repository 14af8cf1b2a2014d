"""``migrator explain``: what the mapping does, table by table."""

from __future__ import annotations

from pathlib import Path

import click

from migrator import config as configuration
from migrator import wiring
from migrator.cli.options import conf_option, config_option, master_option, spark_options
from migrator.errors import ConfigError
from migrator.run.migration import plans
from transforms.explained import explained, optimized


@click.command()
@config_option
@master_option
@conf_option
@click.argument("table", required=False)
@click.option("--plan", "with_plan", is_flag=True, help="Spark's plan of each mapping as well.")
def explain(
    config: Path, master: str | None, conf: tuple[str, ...], table: str | None, with_plan: bool
) -> None:
    """Tell for each target table (or TABLE) its kind, grain and links, where a change goes, and what fills nothing.

    Reads the structure of both sides, changes nothing.
    """
    parts = wiring.parts(configuration.load(config), master, spark_options(conf))
    known = [target.name for target in parts.mapping.targets]
    if table is not None and table not in known:
        raise ConfigError(
            f"the mapping makes no table {table!r}",
            where=str(config),
            cause=f"it makes {', '.join(known)}",
            remedy="name one of them, or none for all",
        )
    _, tables, found = plans(parts)
    for target in tables:
        name = target.id.name
        if table in (None, name):
            lines = explained(found[name], target)
            click.echo("\n".join([*lines, *(optimized(parts.spark(), found[name]) if with_plan else []), ""]))
