"""``migrator status``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from migrator.cli.options import SECONDS, Amount, chosen, config_option, reverse_option
from migrator.cli.status.document import document
from migrator.cli.status.screen import show
from migrator.cli.status.words import lines
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.core.standing import Standing, standing
from migrator.errors import MigratorError
from migrator.wiring.observed import status as observed
from migrator.wiring.observed.status import Status
from verify.tables.coverage import Coverage, read_coverage

_MAX_LAG_S = 60.0


@click.command()
@config_option
@reverse_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable; with --watch a document a line.")
@click.option(
    "--max-lag",
    "max_lag_s",
    type=SECONDS,
    default=_MAX_LAG_S,
    show_default=True,
    metavar="SECONDS",
    help="Up to this age of the oldest change that isn't applied, the target counts as caught up.",
)
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--every",
    "every_s",
    type=Amount(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: the time between two looks.",
)
def status(config: Path, reverse: bool, as_json: bool, max_lag_s: float, watch: bool, every_s: float) -> int:
    """Shows how far the target is behind, and what is dumped, captured, applied and verified; works beside a run."""
    settings = chosen(configuration.load(config), reverse=reverse)
    if not watch:
        return int(_show(settings, as_json, max_lag_s))
    while True:  # until Ctrl-C
        try:
            _show(settings, as_json, max_lag_s, watched=True)
        except MigratorError as error:
            if not as_json and sys.stdout.isatty():
                click.clear()  # what was known before holds no longer
            click.echo("\n".join(error.lines()), err=True)
        time.sleep(every_s)


def _show(settings: Settings, as_json: bool, max_lag_s: float, *, watched: bool = False) -> Standing:
    found = observed.status(settings)
    covered = of_the_mapping(read_coverage(settings.reports()), found)
    stands = verdict(found, covered, max_lag_s)
    if as_json:
        click.echo(json.dumps(document(settings, found, covered, stands), indent=None if watched else 2))
        return stands
    text = list(lines(settings, found, covered, stands, time.time()))
    if watched:
        show(text)
    else:
        click.echo("\n".join(text))
    return stands


def of_the_mapping(covered: Coverage | None, found: Status) -> Coverage | None:
    """Returns what was verified, without targets that the mapping no longer has."""
    checkpoint = None if found.ledger is None else found.ledger.checkpoint
    if covered is None or checkpoint is None:
        return covered
    return replace(covered, tables=tuple(one for one in covered.tables if checkpoint.maps(one.table)))


def verdict(found: Status, covered: Coverage | None, max_lag_s: float) -> Standing:
    """The standing, by which the command exits."""
    wrong = covered is not None and any(one.verdict == "different" for one in covered.tables)
    return standing(
        leads=bool(found.leader),
        different=wrong,
        lag=found.lag,
        max_lag_s=max_lag_s,
        complete=found.complete(),
    )
