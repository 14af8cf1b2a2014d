"""``migrator check``."""

from __future__ import annotations

from functools import partial

import click

from migrator.cli.options import OnSpark, either_way
from migrator.cli.reverse.check import round_trips
from migrator.config.project import Settings
from migrator.errors import TargetError, readable
from migrator.model.finding import Finding
from migrator.model.ledger import Ledger
from migrator.run.analysed import Looked, look
from migrator.run.commands.against_ledger import against_ledger
from migrator.run.commands.fits import unfit
from migrator.run.commands.grain_proof import REMEDY, Verdict, prove
from migrator.run.commands.next_checks import next_checks
from migrator.run.commands.round_trip import ROWS
from migrator.run.migration import preflight
from migrator.run.parts import Parts
from migrator.wiring import parts as wiring
from migrator.wiring import target as wiring_target
from migrator.wiring.half_reset import refuse_half
from migrator.wiring.in_force import load_applied
from transforms.analysis.plan import MappingPlan
from transforms.load import read_mapping
from transforms.on_spark.explained import grain, links

GRAIN_ROWS = 200
"""Number of rows of its table of which the grains are tried, unless somebody says otherwise."""
VALUE_SECONDS = 5.0
"""Seconds for which each source table is searched for values that don't fit, unless somebody says otherwise."""
_REFUSES = click.style("refuses", fg="red")


@click.command()
@click.option(
    "--grain-rows",
    default=GRAIN_ROWS,
    show_default=True,
    type=click.IntRange(0, 10_000),
    help="Try the grains of so many source rows of each joined target; 0: none.",
)
@click.option(
    "--value-seconds",
    default=VALUE_SECONDS,
    show_default=True,
    type=click.FloatRange(0, 36_000),
    help="Look through each source table for so long for values that the new schema can't hold; 0: not at all.",
)
@click.option(
    "--rows",
    default=ROWS,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="With --reverse: map so many rows of each old table there and back; a smaller table as a whole.",
)
@either_way
def check(project: OnSpark, grain_rows: int, value_seconds: float, rows: int) -> int:
    """Preflight: everything that stands in the way of a run, all at once, each with its remedy. Changes nothing.

    Of joined targets some grains are mapped together and apart: a row that comes out otherwise shows a wrong grain.
    Some rows of each table, and those that the source suspects, are mapped and tried by the target.
    With --reverse rows of the old tables are mapped there and back: what comes back otherwise is named by column.
    """
    settings = project.settings
    refuse_half(settings)
    load = partial(load_applied, settings, load=read_mapping)
    parts = wiring.parts(settings, project.master, project.options, load)
    findings = preflight(parts)
    for finding in findings:
        print_finding(finding)
    unready = _revision(settings)
    for file in parts.mapping.aside:
        click.echo(f"note     mapping: {file.name} is no part of it: no line of it says `-- target: <table>`")
    looked = look(parts.spark, parts.mapping, parts.catalog, parts.target)
    fatal = sum(finding.fatal for finding in findings) + unready
    fatal += _print_problems(looked, findings)
    if not fatal:
        ledger = wiring_target.peek(settings)
        more, values = _check_rows(parts, looked, ledger, grain_rows, value_seconds)
        values += _check_nexts(parts, ledger)
        findings += values
        fatal += more + sum(finding.fatal for finding in values)
    trips = 0
    if settings.reversed:
        declared = [target.name for target in parts.mapping.targets]
        trips = round_trips(project, looked, declared, rows)
    click.echo(f"{fatal} refusal(s), {sum(not finding.fatal for finding in findings)} warning(s)")
    return 2 if fatal else trips


def _revision(settings: Settings) -> int:
    """Prints what is wrong with the target's revision; whether anything is."""
    try:
        problem = wiring.revision_problem(settings)
    except TargetError as error:  # what else is wrong is told all the same
        problem = "\n    ".join(error.lines())
    if problem:
        click.echo(f"{_REFUSES}  revision: {settings.target.url()}\n    {problem}")
    return int(problem is not None)


def print_finding(finding: Finding) -> None:
    """Prints a finding with its remedy."""
    label = _REFUSES if finding.fatal else click.style("warning", fg="yellow")
    remedy = readable(finding.remedy)
    click.echo(f"{label}  {finding.check}: {finding.subject}\n    {finding.problem}\n    remedy: {remedy}")


def _print_problems(looked: Looked, findings: list[Finding]) -> int:
    """Prints all that is wrong with the mapping's functions; how many reasons there are why it can't be used."""
    found = looked.analysed
    for problem in found.problems:
        click.echo(f"{_REFUSES}  mapping: " + "\n    ".join(problem.lines()))
    subjects = [finding.subject for finding in findings if finding.fatal]
    new = [name for name in looked.refused if not any(name == one.rpartition(".")[2] for one in subjects)]
    for name in new:
        click.echo(f"{_REFUSES}  table: " + "\n    ".join(looked.refused[name].lines()))
    for name, tables in found.untried.items():
        click.echo(f"note     mapping: {name} wasn't looked at: {', '.join(tables)} can't be read, see above")
    return len(found.problems) + len(new)


def _check_rows(
    parts: Parts, looked: Looked, ledger: Ledger | None, grain_rows: int, value_seconds: float
) -> tuple[int, list[Finding]]:
    """Prints what the mapping does; how many of its grains are wrong, and other findings: values that don't fit, rows
    of another mapping."""
    structure = looked.structure
    values = against_ledger(parts, ledger, list(structure.new.values()), looked.analysed.plans)
    for finding in values:
        print_finding(finding)
    wrong = 0
    for plan in looked.analysed.plans.values():
        reads = ", ".join(f"{table} (key {', '.join(structure.old[table].key)})" for table in plan.reads)
        click.echo(f"ok       mapping: {plan.target.name} is {plan.kind.value}, from {reads or 'constants'}")
        for reach in plan.reaches:
            ways = "; ".join(text for _, text in links(reach))
            click.echo(f"             grain {grain(reach)}{f'; links {ways}' if ways else ''}")
        verdict = prove(parts, plan, grain_rows) if plan.reaches and grain_rows else None
        if verdict is not None and _print_grains(plan, verdict):
            wrong += 1
            continue
        sampled = None if verdict is None else verdict.rows
        for finding in unfit(parts, plan, structure.new[plan.target.name], value_seconds, sampled):
            print_finding(finding)
            values.append(finding)
    return wrong, values


def _check_nexts(parts: Parts, ledger: Ledger | None) -> list[Finding]:
    """Prints what is wrong with functions that are declared as next, or in what they differ."""
    found: list[Finding] = []
    for one in next_checks(parts, ledger):
        for finding in one.problems:
            print_finding(finding)
        if not one.problems:
            differs = (
                f"differs from the one in force: {one.differs}" if one.differs else "makes the same rows"
            )
            click.echo(f"ok       next: {one.target}'s next function {differs}")
        found += one.problems
    return found


def _print_grains(plan: MappingPlan, verdict: Verdict) -> bool:
    """Prints whether rows depend on one grain each, as far as a sample shows; whether they don't."""
    if verdict.wrong:
        click.echo(
            f"{_REFUSES}  grain: {plan.target.name}\n    {verdict.wrong}\n    remedy: {readable(REMEDY)}"
        )
        return True
    if verdict.untried:
        click.echo(
            f"{click.style('warning', fg='yellow')}  grain: {plan.target.name} wasn't tried: {verdict.untried}"
        )
    else:
        click.echo(f"             {verdict.grains} grains tried, together and apart")
    return False
