"""``migrator rows``: the rows that the target refused and that were set aside, listed, tried again, or given up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from migrator.cli.kept import keep, reason_option
from migrator.cli.options import SECONDS, OnSpark, config_option, json_option, on_spark, print_document
from migrator.config import project as configuration
from migrator.errors import RequestError
from migrator.model.progress import BadRow
from migrator.wiring import bad_rows as wiring
from migrator.wiring.target import bad_rows
from verify.report.display import on_terminal


@click.group()
def rows() -> None:
    """Look after the rows that the target refused and that were set aside ([apply] bad_rows)."""


@rows.command("set-aside")
@config_option
@click.option("--table", "tables", multiple=True, help="A target table; may be repeated. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def set_aside(config: Path, tables: tuple[str, ...], as_json: bool) -> None:
    """List the rows that are set aside: key, place in the log, reason and mapped row.

    The target has no row of these keys. A grain stands for all rows that a joined target would have of it; the row
    shown is of the source.
    """
    found = [one for one in bad_rows(configuration.load(config)) if not tables or one.target in tables]
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    for one in found:
        for line in lines_of(one):
            click.echo(line)
    click.echo(counted(found))


@rows.command()
@on_spark
@reason_option
@click.option(
    "--wait",
    "wait_s",
    default=300.0,
    show_default=True,
    type=SECONDS,
    help="Longest wait for the run, in seconds.",
)
@json_option
@click.argument("table", required=False)
@click.argument("key", nargs=-1)
def retry(
    project: OnSpark, reason: str, wait_s: float, as_json: bool, table: str | None, key: tuple[str, ...]
) -> int:
    """Try rows again that are set aside: all, those of TABLE, or the one with this KEY, a value for each column.

    They are dumped again through the running `migrator run`, in order with the stream. Rows that were dropped are
    tried only where their KEY is given.
    """
    settings = replace(project.settings, reason=reason)
    project = replace(project, settings=settings)
    wanted = chosen(bad_rows(settings), table, key)
    left: list[BadRow] = []
    if wanted:
        names = wiring.begin_retry(settings, wanted, project.master, project.options)
        keep(settings, "rows retry", ", ".join(f"{one.target} {one.key_text()}" for one in wanted))
        left = wiring.await_retry(settings, names, wanted, wait_s)
    if as_json:
        print_document(retried(settings.name, wanted, left))
        return 1 if left else 0
    if not wanted:
        click.echo("no such row is set aside")
        return 0
    for one in left:
        for line in lines_of(one):
            click.echo(line)
    click.echo(f"{len(wanted)} tried again, {len(wanted) - len(left)} no longer set aside")
    return 1 if left else 0


@rows.command()
@config_option
@click.option(
    "--reason", required=True, metavar="TEXT", help="Why; kept in the history (`migrator history`)."
)
@click.argument("table")
@click.argument("key", nargs=-1, required=True)
@json_option
def drop(config: Path, reason: str, table: str, key: tuple[str, ...], as_json: bool) -> None:
    """Accept that the row of TABLE with this KEY, a value for each column, isn't migrated as it is now.

    It no longer stands in the way of a hand-over; `verify` goes on to name it. A later version is tried as ever.
    """
    settings = replace(configuration.load(config), reason=reason)
    dropped = wiring.drop(settings, table, key)
    if as_json:
        click.echo(json.dumps([asdict(dropped)], indent=2))
        return
    click.echo(f"{table} {on_terminal(dropped.key_text())}: accepted that it isn't migrated")


def retried(migration: str, wanted: Sequence[BadRow], left: Sequence[BadRow]) -> dict[str, Any]:
    """The document of `migrator rows retry --json` (docs/schemas/retried.schema.json)."""
    return {
        "format": 1,
        "migration": migration,
        "tried": len(wanted),
        "left": [asdict(one) for one in left],
    }


def chosen(found: Sequence[BadRow], table: str | None, key: Sequence[str]) -> list[BadRow]:
    """The rows that are to be tried. Raises ``RequestError`` for a key that isn't set aside."""
    if table is None:
        return [one for one in found if not one.dropped]
    of_table = [one for one in found if one.target == table]
    if not key:
        return [one for one in of_table if not one.dropped]
    wanted = [one for one in of_table if one.is_named(key)]
    if not wanted:
        raise RequestError(
            f"no row of {table} with this key is set aside",
            where=f"{table} {' '.join(key)}",
            cause=f"there are {len(of_table)} of this table",
            remedy="take table and key as `migrator rows set-aside` lists them",
        )
    return wanted


def lines_of(one: BadRow) -> list[str]:
    """A row that is set aside, in words."""
    said = f"; dropped: {on_terminal(one.dropped)}" if one.dropped else ""
    came = one.parent is not None and one.parent.came
    said += "; the row that it waits for came: it can be tried again" if came else ""
    return [
        f"{one.target} {'grain ' if one.grain else ''}{on_terminal(one.key_text())}: at {one.position}{said}",
        f"    reason: {on_terminal(one.reason)}",
        f"    row: {on_terminal(one.row)}",
    ]


def counted(found: Sequence[BadRow]) -> str:
    """The number of rows, by table."""
    if not found:
        return "no row is set aside"
    names = dict.fromkeys(one.target for one in found)
    return "set aside: " + ", ".join(f"{name} {sum(one.target == name for one in found)}" for name in names)
