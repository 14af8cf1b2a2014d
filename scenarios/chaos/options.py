"""The options of ``migrator scenario run`` for a project of the user's own. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from scenarios.chaos.profiles import CHANGES, PROFILES


def _of_profiles(name: str) -> str:
    """The values of a profile's attribute in words."""
    values = {profile: getattr(one, name) for profile, one in PROFILES.items()}
    return ", ".join(f"{profile} {value}" for profile, value in values.items() if value is not None)


_OPTIONS = (
    click.option(
        "--project",
        type=click.Path(path_type=Path),
        help="Run this project (its folder, or its migration.toml) instead of scenarios of the catalog.",
    ),
    click.option(
        "--old-schema",
        help="The project's old schema: SQL file or dump, folder of Alembic revisions, or a database's address,"
        " of which only the structure is read.",
    ),
    click.option(
        "--sample",
        type=click.Path(path_type=Path),
        help="Rows for the old tables: a CSV or Parquet file named after its table, or a folder of such files.",
    ),
    click.option(
        "--rows",
        default=100,
        show_default=True,
        type=click.IntRange(1, 100_000),
        help="Rows to make up for each old table that has none.",
    ),
    click.option(
        "--hazard",
        "hazards",
        multiple=True,
        help="Place this hazard in the project's run (several: repeat it, or commas). `list` lists all of them.",
    ),
    click.option(
        "--profile",
        type=click.Choice(tuple(PROFILES)),
        help="Several runs: quick has some hazards in one run, nightly each hazard once, all each alone, too.",
    ),
    click.option(
        "--minutes",
        type=click.FloatRange(min=0.0, min_open=True),
        help="Time budget: no further run of a profile begins after so many minutes, and those left are unknown."
        f"  [default: {_of_profiles('minutes')}]",
    ),
    click.option(
        "--shrink",
        metavar="MINUTES",
        default=0,
        type=click.FloatRange(min=0.0),
        help="Make each failed run smaller for so many minutes: fewer rows, transactions and columns, printed with"
        " the line that plays them again.",
    ),
    click.option(
        "--changes",
        type=click.IntRange(1),
        help="Row changes of the project's clients in each run."
        f"  [default: {_of_profiles('changes')}, else {CHANGES}]",
    ),
    click.option(
        "--clients", default=3, show_default=True, type=click.IntRange(1, 20), help="So many clients write."
    ),
    click.option(
        "--weights",
        metavar="FILE|ADDRESS",
        help="How often each kind of transaction, table and awkward value comes: a TOML file; or the address of a"
        " database, whose counters of row changes say it.",
    ),
    click.option(
        "--query-log",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The clients do again what this log tells: the general log of MySQL or MariaDB, PostgreSQL's csvlog.",
    ),
)


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
