"""``migrator scenario mutants``: broken variants of the product on real servers; each must be caught."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from migrator.cli.signals import unwinding
from scenarios import json_file
from scenarios.mutants.on_servers import SAID, Trial, chosen, heading, lines, overall, tried
from scenarios.play import catalog_files, runner
from scenarios.play.run_result import RunResult
from verify.history.result import Outcome

EXIT_CODES: Mapping[Outcome, int] = {Outcome.HOLDS: 0, Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}


@click.command()
@click.argument("names", nargs=-1, metavar="[MUTANT]...")
@click.option("--per-change", is_flag=True, help="Only those that every change tries.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The first seed.")
@click.option(
    "--json", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write the numbers there."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".scenarios"),
    show_default=True,
    help="Folder for bundles.",
)
@click.pass_context
def mutants(
    context: click.Context, names: tuple[str, ...], per_change: bool, seed: int, path: Path | None, out: Path
) -> None:
    """Play broken variants of the product on embedded servers; the checkers must catch each.

    Exit codes: 0 all caught, 1 one survived, 3 one could not be judged. A stop or a crash is no catch.
    """
    click.get_current_context().with_resource(unwinding())

    def play(trial: Trial, seed: int) -> RunResult:
        file = catalog_files.path_of(trial.scenario)
        text = catalog_files.text_of(file)
        return runner.run(catalog_files.parse(file, text), trial.engine, seed, out, text, trial.mutant)

    rows = []
    click.echo(heading())
    for trial in chosen(names, per_change):
        rows.append(tried(trial, seed, play))
        for line in lines(rows[-1]):
            click.echo(line)
    outcome = overall(rows)
    caught = sum(row.outcome is Outcome.HOLDS for row in rows)
    elapsed_s = sum(row.elapsed_s for row in rows)
    click.echo(f"{caught} of {len(rows)} {SAID[Outcome.HOLDS]}, {elapsed_s:.0f} s")
    if path is not None:
        document = {"outcome": outcome.value, "first": seed, "mutants": [row.document() for row in rows]}
        json_file.write(path, document)
    context.exit(EXIT_CODES[outcome])
