"""``migrator check``."""

from __future__ import annotations

import click

from migrator.cli.options import OnSpark, on_spark
from migrator.errors import MigratorError, readable
from migrator.run.commands.grain_proof import REMEDY, prove
from migrator.run.migration import Parts, plans, preflight
from migrator.wiring import parts as wiring
from transforms.analysis.plan import MappingPlan
from transforms.on_spark.explained import grain, links

GRAIN_ROWS = 200
"""Number of rows of its table of which the grains are tried, unless somebody says otherwise."""


@click.command()
@click.option(
    "--grain-rows",
    default=GRAIN_ROWS,
    show_default=True,
    type=click.IntRange(0, 10_000),
    help="Try the grains of so many source rows of each joined target; 0: none.",
)
@on_spark
def check(project: OnSpark, grain_rows: int) -> int:
    """Preflight: everything that stands in the way of a run, all at once, each with its remedy. Changes nothing.

    Of joined targets some grains are mapped together and apart: a row that comes out otherwise shows a wrong grain.
    """
    settings = project.settings
    parts = wiring.parts(settings, project.master, project.options)
    findings = preflight(parts)
    for finding in findings:
        label = click.style("refuses", fg="red") if finding.fatal else click.style("warning", fg="yellow")
        remedy = readable(finding.remedy)
        click.echo(
            f"{label}  {finding.check}: {finding.subject}\n    {finding.problem}\n    remedy: {remedy}"
        )
    problems = [problem for problem in [wiring.revision_problem(settings)] if problem]
    for problem in problems:
        click.echo(
            f"{click.style('refuses', fg='red')}  revision: {settings.target.address()}\n    {problem}"
        )
    for file in parts.mapping.aside:
        click.echo(f"note     mapping: {file.name} is no part of it: no line of it says `-- target: <table>`")
    fatal = sum(finding.fatal for finding in findings) + len(problems)
    if not fatal:
        fatal += _check_mapping(parts, grain_rows)
    click.echo(f"{fatal} refusal(s), {sum(not finding.fatal for finding in findings)} warning(s)")
    return 2 if fatal else 0


def _check_mapping(parts: Parts, grain_rows: int) -> int:
    """Prints what the mapping does; how many reasons there are why it can't be used."""
    try:
        schemas, _, found = plans(parts)
    except MigratorError as error:
        click.echo(f"{click.style('refuses', fg='red')}  mapping: " + "\n    ".join(error.lines()))
        return 1
    keys = {schema.id.name: schema.key for schema in schemas}
    wrong = 0
    for plan in found.values():
        reads = ", ".join(f"{table} (key {', '.join(keys[table])})" for table in plan.reads)
        click.echo(f"ok       mapping: {plan.target.name} is {plan.kind.value}, from {reads or 'constants'}")
        for reach in plan.reaches:
            ways = "; ".join(text for _, text in links(reach))
            click.echo(f"             grain {grain(reach)}{f'; links {ways}' if ways else ''}")
        if plan.reaches and grain_rows:
            wrong += _try_grains(parts, plan, grain_rows)
    return wrong


def _try_grains(parts: Parts, plan: MappingPlan, rows: int) -> int:
    """Prints whether rows depend on one grain each, as far as a sample shows; 1 if they don't."""
    verdict = prove(parts, plan, rows)
    if verdict.wrong:
        label = click.style("refuses", fg="red")
        click.echo(f"{label}  grain: {plan.target.name}\n    {verdict.wrong}\n    remedy: {readable(REMEDY)}")
        return 1
    if verdict.untried:
        click.echo(
            f"{click.style('warning', fg='yellow')}  grain: {plan.target.name} wasn't tried: {verdict.untried}"
        )
    else:
        click.echo(f"             {verdict.grains} grains tried, together and apart")
    return 0
