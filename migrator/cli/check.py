"""``migrator check``."""

from __future__ import annotations

import click

from migrator import wiring
from migrator.cli.options import OnSpark, on_spark
from migrator.errors import MigratorError, readable
from migrator.run.migration import Parts, plans, preflight
from transforms.explained import grain, link


@click.command()
@on_spark
def check(project: OnSpark) -> int:
    """Preflight: everything that stands in the way of a run, all at once, each with its remedy. Changes nothing."""
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
        fatal += _check_mapping(parts)
    click.echo(f"{fatal} refusal(s), {sum(not finding.fatal for finding in findings)} warning(s)")
    return 2 if fatal else 0


def _check_mapping(parts: Parts) -> int:
    """Prints what the mapping does; 1 if it can't be used."""
    try:
        schemas, _, found = plans(parts)
    except MigratorError as error:
        click.echo(f"{click.style('refuses', fg='red')}  mapping: " + "\n    ".join(error.lines()))
        return 1
    keys = {schema.id.name: schema.key for schema in schemas}
    for plan in found.values():
        reads = ", ".join(f"{table} (key {', '.join(keys[table])})" for table in plan.reads)
        click.echo(f"ok       mapping: {plan.target.name} is {plan.kind.value}, from {reads or 'constants'}")
        for reach in plan.reaches:
            ways = "; ".join(link(reach, node) for node in reach.nodes[1:])
            click.echo(f"             grain {grain(reach)}{f'; links {ways}' if ways else ''}")
    return 0
