"""``migrator explain``: what the mapping does, table by table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from migrator.cli.options import (
    chosen,
    conf_option,
    config_option,
    master_option,
    reverse_option,
    spark_options,
)
from migrator.config import project as configuration
from migrator.errors import ConfigError, MappingError, together
from migrator.run.mapping_checks import CLOSE
from migrator.run.migration import plans
from migrator.run.parts import Parts
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from transforms.load import read_mapping
from transforms.on_spark.explained import explained, optimized
from transforms.registry import Mapping


@click.command()
@config_option
@master_option
@conf_option
@click.argument("table", required=False)
@reverse_option
@click.option("--plan", "with_plan", is_flag=True, help="Spark's plan of each mapping as well.")
def explain(
    config: Path, master: str | None, conf: tuple[str, ...], table: str | None, reverse: bool, with_plan: bool
) -> int:
    """Tell for each target table (or TABLE) its kind, grain and links, where a change goes, and what fills nothing.

    Reads the structure of both sides, changes nothing.
    """
    settings = chosen(configuration.load(config), reverse=reverse)
    load = partial(load_applied, settings, load=read_mapping)
    parts = wiring.parts(settings, master, spark_options(conf), load)
    known = list(dict.fromkeys([*(target.name for target in parts.mapping.targets), *parts.mapping.gaps]))
    if table is not None and table not in known:
        if parts.mapping.broken:
            raise together(parts.mapping.broken)
        raise ConfigError(
            f"the mapping makes no table {table!r}",
            where=str(config),
            cause=f"it makes {', '.join(known)}",
            remedy="name one of them, or none for all",
        )
    failed = 0
    for name in known if table is None else [table]:
        try:
            lines = _lines(parts, name, with_plan)
        except MappingError as error:  # the other tables are told about all the same
            failed += 1
            lines = [f"{name}: can't be mapped", *(f"  {line}" for line in error.lines())]
        click.echo("\n".join([*lines, ""]))
    for broken in parts.mapping.broken if table is None else []:
        failed += 1
        click.echo("\n".join(["can't be declared", *(f"  {line}" for line in broken.lines()), ""]))
    return 2 if failed else 0


def _lines(parts: Parts, name: str, with_plan: bool) -> list[str]:
    alone = Mapping()
    if name in parts.mapping:
        alone.add(parts.mapping[name])
        _, [target], found = plans(replace(parts, mapping=alone))
    if name in parts.mapping.gaps:
        raise MappingError(f"{name} is a gap, not mapped yet", cause=parts.mapping.gaps[name], remedy=CLOSE)
    return [*explained(found[name], target), *(optimized(parts.spark(), found[name]) if with_plan else [])]
