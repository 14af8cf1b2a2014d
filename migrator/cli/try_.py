"""``migrator try``: old rows and mapped rows side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

from migrator.cli.options import conf_option, config_option, master_option, spark_options
from migrator.config import project as configuration
from migrator.run.commands.trial import Trial, trials
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied

LINKED = 3
"""Rows of each linked table that are shown, unless somebody asks for more."""
_WIDTH = 56
"""Characters of the left side; a longer line is cut there, and at twice that on the right."""


@click.command("try")
@config_option
@master_option
@conf_option
@click.argument("table")
@click.option(
    "--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Rows, or grains, at most."
)
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="Key of a source row to begin at; may be repeated."
)
@click.option(
    "--source", default=None, metavar="TABLE", help="Source table to begin at, where there are several."
)
@click.option(
    "--linked",
    default=LINKED,
    show_default=True,
    type=click.IntRange(0, 100_000),
    help="Show so many rows of each table that is linked to the one it begins at; --json has all.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line instead: values as text, NULL as null."
)
def try_(
    config: Path,
    master: str | None,
    conf: tuple[str, ...],
    table: str,
    limit: int,
    keys: tuple[str, ...],
    source: str | None,
    linked: int,
    as_json: bool,
) -> int:
    """Map some rows of the source to the target TABLE and show old and new side by side. Writes nothing.

    Of a joined target: some grains, each mapped with all the rows that it reads. Old rows are shown with their key
    and the columns that the mapping reads. What can't be mapped, or stored, is named
    by row and column.
    """
    settings = configuration.load(config)
    parts = wiring.parts(settings, master, spark_options(conf), partial(load_applied, settings))
    tried = failed = 0
    for trial in trials(parts, table, limit, keys, source):
        tried, failed = tried + 1, failed + bool(trial.problems)
        click.echo(json.dumps(as_document(trial)) if as_json else "\n".join(as_lines(table, trial, linked)))
    if not as_json:
        click.echo(f"{tried} tried, {failed} with problems" if tried else "the source has no row to begin at")
    return 1 if failed else 0


def as_document(trial: Trial) -> dict[str, Any]:
    """A trial for machines: ``new`` is null where the mapping fails."""
    return {
        "of": trial.name,
        "old": {table: _rows(rows) for table, rows in trial.old.items()},
        "new": None if trial.new is None else _rows(trial.new),
        "problems": [{"column": column, "cause": cause} for column, cause in trial.problems],
    }


def as_lines(table: str, trial: Trial, linked: int = LINKED) -> list[str]:
    """A trial for people: old rows on the left, target rows on the right; ``linked``: rows of each further table."""
    left: list[str] = []
    for number, (name, rows) in enumerate(trial.old.items()):
        most = linked if number else rows.num_rows
        left += _listed(name, rows.slice(0, most))
        left += [f"[{name}] and {rows.num_rows - most:,} more (--linked)"] if rows.num_rows > most else []
    right = ["the mapping fails"] if trial.new is None else list(_listed(table, trial.new))
    if not trial.old:
        right = []
    elif trial.new is not None and not trial.new.num_rows:
        right = [f"no row of {table}"]
    return [
        click.style(trial.name, bold=True),
        *(
            f"  {_cut(a, _WIDTH):{_WIDTH}}  {_cut(b, 2 * _WIDTH)}".rstrip()
            for a, b in zip_longest(left, right, fillvalue="")
        ),
        *(
            click.style(f"  problem: {f'column {column}: ' if column else ''}{cause}", fg="red")
            for column, cause in trial.problems
        ),
        "",
    ]


def _listed(name: str, rows: pa.Table) -> Iterator[str]:
    for row in _rows(rows):
        yield f"[{name}]"
        yield from (f"{column} = {'NULL' if value is None else value}" for column, value in row.items())


def _cut(text: str, width: int) -> str:
    line = " ".join(text.splitlines()) if "\n" in text else text
    return line if len(line) <= width else line[: width - 3] + "..."


def _rows(rows: pa.Table) -> list[dict[str, str | None]]:
    """Every value as text: numbers in full, binary as hexadecimal digits."""
    return list(pa.table([_texts(column) for column in rows.columns], names=rows.column_names).to_pylist())


def _texts(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
    if pa.types.is_floating(column.type):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    return pc.cast(column, pa.string())
