"""Acts of commands, kept in the target's history."""

from __future__ import annotations

import click

from migrator.config.project import Settings
from migrator.errors import MigratorError
from migrator.wiring import target as wiring_target

reason_option = click.option(
    "--reason", default="", metavar="TEXT", help="Why; kept in the history (`migrator history`)."
)


def keep(settings: Settings, act: str, detail: str = "") -> None:
    """Keeps what was done. Where it can't be kept, that is said, and what was done stays."""
    try:
        wiring_target.acts(settings).add(act, settings.reason, detail)
    except MigratorError as error:
        _not_kept(act, error)


def keep_stop(settings: Settings, detail: str) -> None:
    """Keeps that this process no longer leads, if it did."""
    try:
        wiring_target.acts(settings).stopped(settings.reason, detail)
    except MigratorError as error:
        _not_kept("stop", error)


def _not_kept(act: str, error: MigratorError) -> None:
    click.echo(f"warning: the history lacks this {act}: {error}", err=True)
