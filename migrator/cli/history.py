"""``migrator history``: who did what to the migration, when and why."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from migrator.cli.options import config_option
from migrator.config import project as configuration
from migrator.wiring import target as wiring_target


@click.command()
@config_option
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="The latest so many acts."
)
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def history(config: Path, limit: int, as_json: bool) -> None:
    """Show every act: starts, stops, takeovers, dump requests, repairs; who did it, where, when and why.

    They are kept in the target, beside the ledger; times are its clock's.
    """
    found = wiring_target.acts(configuration.load(config)).newest(limit)
    if as_json:
        click.echo(json.dumps([asdict(act) for act in found], indent=2))
        return
    for act in found:
        click.echo(act.line())
    if not found:
        click.echo("nothing was done yet")
