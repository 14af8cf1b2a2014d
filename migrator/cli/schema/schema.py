"""``migrator schema``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from migrator.cli.options import config_option, json_option, print_document, print_sql
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.schema import Revision, Standing
from migrator.wiring import revisions as wiring

LOCK_SECONDS = 10
"""Seconds that a statement waits for a lock, unless somebody says otherwise: queries wait behind it."""


@click.group()
def schema() -> None:
    """Run the project's Alembic revisions, which make the new schema, and see which ran.

    Revisions are files in the folder that `[migration] alembic` names. The tool's own tables have revisions of their
    own, which every run brings up to date by itself.
    """


@schema.command()
@config_option
@click.argument("revision", default="head")
@click.option("--sql", is_flag=True, help="Print the SQL that would run now, and run nothing.")
@click.option(
    "--lock-timeout",
    "lock_s",
    default=LOCK_SECONDS,
    show_default=True,
    type=click.IntRange(1, 86_400),
    help="Seconds that a statement may wait for a lock; queries of others wait behind it.",
)
@json_option
def upgrade(config: Path, revision: str, sql: bool, lock_s: int, as_json: bool) -> None:
    """Run the revisions that the target lacks, up to REVISION or the newest, as the owner of its tables.

    The login is that of [target] owner with owner_password_env, owner_password_file or owner_password_keyring;
    without it that of the migration. On PostgreSQL all of them are one transaction. MySQL and MariaDB end a
    transaction with each change of a structure: there an error says what stays.
    """
    settings = configuration.load(config, owner=True)
    if as_json:
        with redirect_stdout(sys.stderr):  # revisions are the user's code, and may print
            written = wiring.written(settings, revision) if sql else None
            ran = [] if sql else wiring.upgrade(settings, revision, lock_s)
        print_document(upgraded(settings.name, ran, written))
        return
    if sql:
        print_sql(wiring.written(settings, revision))
        return
    ran = wiring.upgrade(settings, revision, lock_s)
    for one in ran:
        click.echo(f"ran      {one.line()}")
    if ran and _another_owner(settings):
        click.echo(
            f"next: `migrator grants --print --side target` has what {settings.target.user} needs on new tables"
        )
    if not ran:
        click.echo("nothing to run: the target has all of these revisions")


def _another_owner(settings: Settings) -> bool:
    return settings.owner is not None and settings.owner.user != settings.target.user


@schema.command()
@config_option
@json_option
def current(config: Path, as_json: bool) -> None:
    """Tell which revision the target is at, and which are still to run. Changes nothing."""
    settings = configuration.load(config, owner=True)
    found = wiring.standing(settings)
    if as_json:
        print_document(standing(settings.name, found))
        return
    click.echo(f"at       {', '.join(found.at) or 'none'}")
    click.echo(f"head     {', '.join(found.heads) or 'none'}")
    for one in found.revisions:
        if not one.ran:
            click.echo(f"to run   {one.line()}")


@schema.command()
@config_option
@json_option
def history(config: Path, as_json: bool) -> None:
    """List all revisions, oldest first, and say which the target has. Changes nothing."""
    settings = configuration.load(config, owner=True)
    found = wiring.standing(settings)
    if as_json:
        print_document(standing(settings.name, found))
        return
    for one in found.revisions:
        click.echo(f"{'ran' if one.ran else 'to run':8} {one.line()}")


def standing(migration: str, found: Standing) -> dict[str, Any]:
    """The document of `migrator schema current` and `history` (docs/schemas/revisions.schema.json)."""
    return {
        "format": 1,
        "migration": migration,
        "at": list(found.at),
        "heads": list(found.heads),
        "revisions": [{"name": one.name, "text": one.said, "ran": one.ran} for one in found.revisions],
    }


def upgraded(migration: str, ran: Sequence[Revision], sql: str | None) -> dict[str, Any]:
    """The document of `migrator schema upgrade --json` (docs/schemas/upgrade.schema.json)."""
    return {
        "format": 1,
        "migration": migration,
        "ran": [{"name": one.name, "text": one.said} for one in ran],
        "sql": sql,
    }
