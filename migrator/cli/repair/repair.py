"""``migrator repair``: makes target rows right that differ, through the run; first says what it would do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import join

import click

from migrator.cli.kept import keep, reason_option
from migrator.cli.options import SECONDS, OnSpark, on_spark, print_report, repair_words, report_json_option
from migrator.cli.phases import say as phase
from migrator.cli.repair.choice import Choice, chosen, not_differing
from migrator.cli.repair.forms import RepairReport, file_name, lines, write_reports
from migrator.cli.repair.report import Outcome, outcome, planned_lines, planned_outcome
from migrator.cli.verify import Bounds, note, verified
from migrator.config.project import Settings
from migrator.errors import RequestError
from migrator.run.commands.repair import RepairStep, Wanted, children_first, repair_steps
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from migrator.wiring.repair import await_repair, begin_repair, running_leader
from migrator.wiring.under_cutover import refuse_under_cutover
from verify.report.display import on_terminal
from verify.tables.compare.compare import DUPLICATE
from verify.tables.findings.differing import Differing, read_differing
from verify.tables.findings.fix_sql import write_fix_sql


@dataclass(frozen=True, slots=True)
class _Began:
    """The moment when a command began, by both clocks."""

    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    monotonic_s: float = field(default_factory=time.monotonic)


@click.command()
@on_spark
@click.option(
    "--from",
    "report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="REPORT",
    help="verify.json of an earlier verification. Default: verify now.",
)
@click.option("--table", "tables", multiple=True, help="A target table; may be repeated. Default: all.")
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="A key of the target table; may be repeated."
)
@click.option(
    "--range", "key_range", nargs=2, default=None, metavar="LOW HIGH", help="First and last key, inclusive."
)
@reason_option
@click.option("--apply", "apply", is_flag=True, help="Do it. Without, nothing is written to any database.")
@click.option(
    "--sql",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write statements to FILE, to be read and run by hand, instead.",
)
@click.option(
    "--wait",
    "wait_s",
    default=300.0,
    show_default=True,
    type=SECONDS,
    help="Longest wait for the run, in seconds.",
)
@report_json_option
def repair(
    project: OnSpark,
    report: Path | None,
    tables: tuple[str, ...],
    keys: tuple[str, ...],
    key_range: tuple[str, str] | None,
    reason: str,
    apply: bool,
    sql: Path | None,
    wait_s: float,
    as_json: bool,
) -> int:
    """Make target rows right that differ from mapping(source): wrong, missing and extra ones.

    Shows what would be done; with --apply the rows are dumped again through the running `migrator run`, in
    order with the stream, rows that the source doesn't make are removed, and all is verified again. A KEY of
    several columns is one CSV row.
    """
    settings = replace(project.settings, reason=reason)
    project = replace(project, settings=settings)
    if apply and sql is not None:
        raise RequestError(
            "--apply and --sql exclude each other",
            where="--apply --sql",
            cause="statements run by hand know nothing of the stream",
            remedy="choose one",
        )
    if as_json and sql is not None:
        raise RequestError(
            "--json and --sql exclude each other",
            where="--json --sql",
            cause="statements that are written to a file make no report",
            remedy="choose one",
        )
    say = partial(click.echo, err=as_json)
    choice, began = Choice(tables, keys, key_range), _Began()
    found = read_differing(report) if report is not None else _verified(project, tables)
    differing = chosen(found, choice, settings.name)
    for key in not_differing(differing, choice):
        say(f"{differing.tables[0].table}: {on_terminal(key)} isn't among the keys that differ")
    if sql is not None:
        return _statements(project, differing, sql)
    again = _command(settings, choice)
    phase("looking for the rows that they come from")
    parts = wiring.parts(settings, project.master, project.options, partial(load_applied, settings))
    steps = repair_steps(parts, _wanted(differing))
    for line in planned_lines(differing, steps):
        say(line)
    if apply and steps:
        refuse_under_cutover(settings, "a repair")
        return _applied(project, differing, steps, wait_s, again, as_json)
    if steps:
        say("nothing was written; --apply does it, --sql FILE writes statements instead")
    does = _command(settings, choice, report or settings.reports() / "verify.json")
    planned = planned_outcome(differing, steps)  # keys without steps: made twice
    return _reported(settings, began, planned, does, as_json)


def _command(settings: Settings, choice: Choice, apply_from: Path | None = None) -> str:
    """Returns the command that repairs the same choice of rows: those of a report, or after another verification."""
    source = [] if apply_from is None else ["--from", str(apply_from.absolute()), "--apply"]
    return join([*repair_words(settings), *source, *choice.options()])


def _statements(project: OnSpark, differing: Differing, file: Path) -> int:
    settings = project.settings
    names = [table.table for table in differing.tables]
    target = wiring.parts(settings, project.master, project.options).target
    order = children_first(names, target.tables(names))
    number = write_fix_sql(differing, settings.target.kind, settings.target.schema, file, order)
    click.echo(
        f"{number} statements in {file}: read them, stop the run or be sure of the rows, then run them"
    )
    return 1 if number else 0


def _applied(
    project: OnSpark,
    differing: Differing,
    steps: Sequence[RepairStep],
    wait_s: float,
    again: str,
    as_json: bool,
) -> int:
    """Repairs through the run, verifies again, and tells before and after."""
    settings = project.settings
    say = partial(click.echo, err=as_json)
    say(f"through the run of {running_leader(settings)}")
    began = _Began()
    asked = begin_repair(settings, steps)
    counts = ", ".join(f"{len(step.keys):,} rows of {step.target}" for step in steps)
    keep(settings, "repair", f"{counts}, by {', '.join(asked)}")
    requests = await_repair(settings, asked, wait_s, phase)
    tables = tuple(dict.fromkeys(step.target for step in steps))
    done = outcome(differing, steps, requests, _verified(project, tables))
    for line in lines(done):
        say(line)
    return _reported(settings, began, done, again, as_json)


def _reported(settings: Settings, began: _Began, done: Outcome, command: str, as_json: bool) -> int:
    """The reports' files written, their names told; gives the exit code."""
    elapsed_s = round(time.monotonic() - began.monotonic_s, 3)
    report = RepairReport(settings.name, began.at, elapsed_s, done, command)
    write_reports(report, settings.reports())
    print_report(settings.reports(), file_name(done), [], as_json)
    return done.exit_code()


def _wanted(differing: Differing) -> list[Wanted]:
    found = []
    for table in differing.tables:
        keys = [key.key for key in differing.keys if key.table == table.table and key.status != DUPLICATE]
        if keys:
            found.append(Wanted(table.table, table.key, tuple(keys)))
    return found


def _verified(project: OnSpark, tables: tuple[str, ...]) -> Differing:
    """The keys that differ now. The verdicts are noted: whoever watches the run sees that rows were mended."""
    reports = project.settings.reports()
    note(verified(project, tables or None, reports, Bounds(within_s=None)), reports)
    return read_differing(reports / "verify.json")
