"""``migrator schema``."""

from __future__ import annotations

from pathlib import Path

import click

from migrator.cli.options import config_option
from migrator.config import project as configuration
from migrator.config.project import Settings
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
def upgrade(config: Path, revision: str, sql: bool, lock_s: int) -> None:
    """Run the revisions that the target lacks, up to REVISION or the newest, as the owner of its tables.

    The login is that of [target] owner with owner_password_env, owner_password_file or owner_password_keyring;
    without it that of the migration. On PostgreSQL all of them are one transaction. MySQL and MariaDB end a
    transaction with each change of a structure: there an error says what stays.
    """
    settings = configuration.load(config, owner=True)
    if sql:
        click.echo(wiring.written(settings, revision), nl=False)
        return
    ran = wiring.upgrade(settings, revision, lock_s)
    for line in ran:
        click.echo(f"ran      {line}")
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
def current(config: Path) -> None:
    """Tell which revision the target is at, and which are still to run. Changes nothing."""
    found = wiring.standing(configuration.load(config, owner=True))
    click.echo(f"at       {', '.join(found.at) or 'none'}")
    click.echo(f"head     {', '.join(found.heads) or 'none'}")
    for one in found.revisions:
        if not one.ran:
            click.echo(f"to run   {one.name}  {one.said}".rstrip())


@schema.command()
@config_option
def history(config: Path) -> None:
    """List all revisions, oldest first, and say which the target has. Changes nothing."""
    for one in wiring.standing(configuration.load(config, owner=True)).revisions:
        click.echo(f"{'ran' if one.ran else 'to run':8} {one.name}  {one.said}".rstrip())
