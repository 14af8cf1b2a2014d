"""``migrator explain``: what the mapping does, table by table."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

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
from migrator.errors import ConfigError, MappingError, readable, together
from migrator.run.mapping_checks import CLOSE
from migrator.run.migration import plans
from migrator.run.parts import Parts
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from transforms.analysis.plan import MappingPlan
from transforms.load import read_mapping
from transforms.on_spark.explained import Explained, explained, lines, optimized
from transforms.registry import Mapping

FORMAT = 1


@click.command()
@config_option
@master_option
@conf_option
@click.argument("table", required=False)
@reverse_option
@click.option("--plan", "with_plan", is_flag=True, help="Spark's plan of each mapping as well.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def explain(
    config: Path,
    master: str | None,
    conf: tuple[str, ...],
    table: str | None,
    reverse: bool,
    with_plan: bool,
    as_json: bool,
) -> int:
    """Tell for each target table (or TABLE) its kind, grain and links, where a change goes, and what fills nothing.

    Reads the structure of both sides, changes nothing.
    """
    settings = chosen(configuration.load(config), reverse=reverse)
    load = partial(load_applied, settings, load=read_mapping)
    parts = wiring.parts(settings, master, spark_options(conf), load)
    entries, failed = [], False
    for name in _names(parts, table, config):
        try:
            plan, found = _explained(parts, name)
        except MappingError as error:  # the other tables are told about all the same
            failed = True
            entries.append(refused(name, error))
            _show([f"{name}: can't be mapped", *(f"  {line}" for line in error.lines())], as_json)
        else:
            tree = optimized(parts.spark(), plan) if with_plan else []
            entries.append(asdict(found) | {"plan": tree})
            _show([*lines(found), *tree], as_json)
    for broken in parts.mapping.broken if table is None else []:
        failed = True
        entries.append(refused("", broken))
        _show(["can't be declared", *(f"  {line}" for line in broken.lines())], as_json)
    code = 2 if failed else 0
    if as_json:
        click.echo(json.dumps(document(settings.name, entries, code), indent=2))
    return code


def document(migration: str, tables: list[dict[str, Any]], exit_code: int) -> dict[str, Any]:
    """The document of `migrator explain --json` (docs/schemas/explain.schema.json)."""
    return {"format": FORMAT, "migration": migration, "exit_code": exit_code, "tables": tables}


def _names(parts: Parts, table: str | None, config: Path) -> list[str]:
    """The target tables that are meant. Raises ``ConfigError`` where the mapping doesn't have the one named."""
    known = list(dict.fromkeys([*(target.name for target in parts.mapping.targets), *parts.mapping.gaps]))
    if table is None:
        return known
    if table not in known:
        if parts.mapping.broken:
            raise together(parts.mapping.broken)
        raise ConfigError(
            f"the mapping makes no table {table!r}",
            where=str(config),
            cause=f"it makes {', '.join(known)}",
            remedy="name one of them, or none for all",
        )
    return [table]


def _show(said: list[str], as_json: bool) -> None:
    if not as_json:
        click.echo("\n".join([*said, ""]))


def refused(name: str, error: MappingError) -> dict[str, Any]:
    """A function that can't be used; ``name`` is empty where nobody knows which table it makes."""
    return {
        "table": name,
        "problem": error.what,
        "where": error.where,
        "cause": error.cause,
        "remedy": readable(error.remedy),
    }


def _explained(parts: Parts, name: str) -> tuple[MappingPlan, Explained]:
    if name in parts.mapping.gaps:
        raise MappingError(f"{name} is a gap, not mapped yet", cause=parts.mapping.gaps[name], remedy=CLOSE)
    alone = Mapping()
    alone.add(parts.mapping[name])
    _, [target], found = plans(replace(parts, mapping=alone))
    return found[name], explained(found[name], target)
