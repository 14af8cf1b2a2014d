"""``migrator rehearse``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from migrator.cli.options import Amount, config_option
from migrator.errors import ConfigError, MigratorError
from scenarios.rehearsal.account import CODES
from scenarios.rehearsal.page import page, text
from scenarios.rehearsal.rehearsal import Order, Rehearsal

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@config_option
@click.option(
    "--old-schema",
    type=_FILE,
    required=True,
    help="SQL of the old schema: `pg_dump -s`, `mysqldump --no-data`, or your own; with rows, if there are some.",
)
@click.option(
    "--new-schema", type=_FILE, help="SQL of the new schema. Default: the project's revisions make it."
)
@click.option(
    "--rows",
    default=100,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Rows to make up for each old table, if the old schema's file has none.",
)
@click.option(
    "--clients", default=2, show_default=True, type=click.IntRange(1, 20), help="So many clients write."
)
@click.option(
    "--seconds",
    default=3.0,
    show_default=True,
    type=Amount(min=0.1),
    help="How long they write between two steps.",
)
@click.option("--kills", is_flag=True, help="Kill the leader at every step of a switch, there and back.")
@click.option("--report", type=_FILE, help="Write the account as one HTML page.")
@click.option("--json", "as_json", is_flag=True, help="The account as JSON on standard output.")
def rehearse(
    config: Path,
    old_schema: Path,
    new_schema: Path | None,
    rows: int,
    clients: int,
    seconds: float,
    kills: bool,
    report: Path | None,
    as_json: bool,
) -> int:
    """Rehearse this project's whole migration on throw-away servers: dump, stream under writes, cut over, go back.

    Reads the project and the SQL files; connects to no server that the settings name, and changes no file of the
    project. Ctrl-C stops and removes everything.
    """
    order = Order(config, old_schema, new_schema, rows, clients, seconds, kills)
    rehearsal = Rehearsal(order, lambda line: click.echo(line, err=as_json))
    try:
        rehearsal.run()
    except MigratorError:
        _write(rehearsal, report)
        raise
    _write(rehearsal, report)
    if as_json:
        click.echo(json.dumps(rehearsal.account.document(), indent=2))
    else:
        click.echo(text(rehearsal.account))
    return CODES[rehearsal.account.outcome()]


def _write(rehearsal: Rehearsal, report: Path | None) -> None:
    if report is None:
        return
    try:
        report.write_text(page(rehearsal.account))
    except OSError as error:
        raise ConfigError(
            "the report can't be written",
            where=str(report),
            cause=error.strerror or str(error),
            remedy="name a file in a folder that is there, with --report",
        ) from error
