"""``migrator remap``: maps the rows of a target anew, after its mapping was changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from migrator.cli.kept import reason_option
from migrator.cli.options import OnSpark, json_option, on_spark, print_document
from migrator.wiring import remap as wiring
from migrator.wiring.remap import Remapped
from migrator.wiring.under_cutover import refuse_under_cutover


@click.command()
@on_spark
@reason_option
@click.option("--abort", is_flag=True, help="Give up a next function of TABLE that isn't in force yet.")
@json_option
@click.argument("table")
def remap(project: OnSpark, reason: str, abort: bool, as_json: bool, table: str) -> None:
    """Map the rows of target TABLE anew, after its mapping was changed.

    A joined target is derived from the mirror; the source isn't read. The run does it with its next batch, in one
    transaction: readers see all rows of before, then all rows anew. Stop the run before the mapping is changed: one
    that leads maps by what it has loaded.

    A row-wise target gets the rows of the function that is declared for it with @mapping.next. The run fills a table
    beside with them, from a dump of its source tables, then puts them in the target's place in one transaction.
    Readers see all rows of before until then.
    """
    settings = replace(project.settings, reason=reason)
    if abort:
        leader = wiring.abort(settings, table)
        if as_json:
            print_document(document(settings.name, table, None, leader))
        else:
            _say_aborted(leader, table)
        return
    refuse_under_cutover(settings, "a remap")
    if as_json:
        done = wiring.remap(settings, table, project.master, project.options)
        print_document(document(settings.name, table, done, done.leader))
        return
    done = wiring.remap(settings, table, project.master, project.options, _say_room)
    if done.beside:
        _say_next(done, table)
        return
    if not done.filled:
        click.echo(f"{table}: not filled yet; it will be once the tables it reads are dumped")
        return
    click.echo(f"{table}: derived anew from the mirror with the run's next batch")
    click.echo(
        f"its table takes {done.bytes / 1e6:,.1f} MB now: the target needs about as much again, until the server has"
        " cleaned up the rows of before"
    )
    if done.leader:
        click.echo(
            f"{done.leader} leads, and maps by the mapping that it has loaded: if that was changed since, stop the"
            " run, give this command again, then start"
        )


def _say_next(done: Remapped, table: str) -> None:
    click.echo(f"{table}: the run fills {done.beside} by the next function, then switches in one transaction")
    if done.leader:
        click.echo(f"{done.leader} leads, and doesn't know of it: stop the run and start it again")
    else:
        click.echo("it begins with the next start: migrator run")


def _say_room(size: int) -> None:
    click.echo(
        f"its table takes {size / 1e6:,.1f} MB now: the target needs about as much again for the table beside, and"
        " up to as much for the rows of before, until the server has cleaned them up"
    )


def document(migration: str, table: str, done: Remapped | None, leader: str) -> dict[str, Any]:
    """The document of `migrator remap --json` (docs/schemas/remap.schema.json); ``done``: None for --abort."""
    outcome = "aborted"
    if done is not None:
        outcome = "beside" if done.beside else "derived anew" if done.filled else "not filled yet"
    return {
        "format": 1,
        "migration": migration,
        "table": table,
        "outcome": outcome,
        "beside": done.beside if done is not None else "",
        "bytes": done.bytes if done is not None else None,
        "leader": leader,
    }


def _say_aborted(leader: str, table: str) -> None:
    click.echo(f"{table}: its rows stay those of the function that made them")
    if leader:
        click.echo(
            f"{leader} leads, and fills the table beside until it starts again: stop the run and start it again"
        )
