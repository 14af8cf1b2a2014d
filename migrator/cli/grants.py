"""``migrator grants``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from migrator.cli.options import chosen, config_option, print_sql, reverse_option
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.model.grants import Grants
from migrator.run.analysed import source_tables
from migrator.wiring import parts as wiring
from migrator.wiring.gates.judge import sides
from verify.dual_read.engines import source_grants, target_grants


@click.command()
@config_option
@reverse_option
@click.option(
    "--print", "printed", is_flag=True, required=True, help="Print the SQL; the only thing it can do."
)
@click.option("--side", type=click.Choice(["source", "target"]), help="One side only. Default: both.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Machine-readable: statements, each with the case in which it is needed.",
)
@click.option(
    "--dual-read", "reader", metavar="LOGIN", help="For a login that only asks dual reads: an application's."
)
def grants(
    config: Path, reverse: bool, printed: bool, side: str | None, as_json: bool, reader: str | None
) -> None:
    """Print the SQL that gives both logins the rights that this configuration needs, and no others.

    Runs nothing and connects to nothing. An administrator reads it and runs it on each server.
    """
    settings = chosen(configuration.load(config), reverse=reverse)
    rights = wiring.grants(settings) if reader is None else _dual_read(settings, reader)
    scripts = dict(zip(("source", "target"), rights, strict=True))
    wanted = {name: script for name, script in scripts.items() if printed and side in (None, name)}
    if as_json:
        click.echo(json.dumps(document(settings.name, wanted), ensure_ascii=False, indent=2))
    else:
        print_sql("\n".join(script.text() for script in wanted.values()))


def document(migration: str, scripts: Mapping[str, Grants]) -> dict[str, object]:
    """The rights by side as one document (docs/schemas/grants.schema.json)."""
    sides = [
        {
            "side": side,
            "title": script.title,
            "account": script.account,
            "make": script.make,
            "needed": list(script.needed),
            "perhaps": [{"statement": statement, "only": case} for statement, case in script.perhaps],
        }
        for side, script in scripts.items()
    ]
    return {"format": 1, "migration": migration, "sides": sides}


def _dual_read(settings: Settings, login: str) -> list[Grants]:
    """Returns the grants for all tables of the mapping: only who writes the queries knows which of them they read."""
    mapping = wiring.mapping(settings)
    old, new = (replace(side, server=replace(side.server, user=login)) for side in sides(settings))
    return [
        source_grants(old, source_tables(mapping)),
        target_grants(new, [target.name for target in mapping]),
    ]
