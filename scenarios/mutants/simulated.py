"""``migrator scenario simulate``: seeds, judged; a failing one is shrunk and told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from scenarios import json_file
from scenarios.mutants.catalog import MUTANTS, Mutant, mutant
from scenarios.mutants.kill import KillRow, heading, kill_row, line
from scenarios.mutants.verifier import good_history, judge_rows
from scenarios.simulation.run import simulate as simulated
from scenarios.simulation.setup import setup_of
from scenarios.simulation.verdict import Tally, explained
from verify.history.result import Outcome

EXIT_CODES: Mapping[Outcome, int] = {Outcome.HOLDS: 0, Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}
_SEEDS = 1000


@click.command()
@click.option("--seeds", default=None, type=click.IntRange(1), help="How many seeds to run; 1000 by default.")
@click.option("--first", default=0, show_default=True, type=click.IntRange(0), help="The first seed.")
@click.option(
    "--mutant", "name", default="", help="Break one rule of the product, or 'all' for the kill table."
)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write the numbers there.")
@click.pass_context
def simulate(context: click.Context, seeds: int | None, first: int, name: str, path: Path | None) -> None:
    """Run the whole pipeline in one process, its steps interleaved by seeds, and judge every run.

    Exit codes: 0 holds, 1 violated, 3 unknown. With --mutant all: 0 if every mutant is killed within its budget;
    --seeds is then the least number of seeds per mutant, for the rate.
    """
    if name == "all":
        outcome, document = _table(seeds or 0, first)
    else:
        outcome, document = _seeds(seeds or _SEEDS, first, mutant(name) if name else None)
    if path is not None:
        json_file.write(path, document)
    context.exit(EXIT_CODES[outcome])


def _seeds(seeds: int, first: int, broken: Mutant | None) -> tuple[Outcome, Mapping[str, Any]]:
    tally, started = Tally(), time.monotonic()
    for seed in range(first, first + seeds):
        setup = broken.apply() if broken else setup_of(seed)
        tally.add(seed, simulated(seed, setup))
        if tally.failed is not None:
            break
    elapsed_s = time.monotonic() - started
    for text in tally.lines():
        click.echo(text)
    click.echo(f"  {tally.seeds / elapsed_s:.0f} seeds/s")
    if tally.failed is not None:
        click.echo("")
        for text in explained(tally.failed[0], broken.apply() if broken else setup_of(tally.failed[0])):
            click.echo(text)
    document = {
        "outcome": tally.outcome.value,
        "mutant": broken.name if broken else "",
        "first": first,
        "seeds": tally.seeds,
        "elapsed_s": round(elapsed_s, 3),
        "commits": tally.commits,
        "faults": tally.faults,
        "checks": {
            code: {
                **{outcome.value: number for outcome, number in counts.items()},
                "checked": tally.checked[code],
            }
            for code, counts in tally.counts.items()
        },
        "failed": None if tally.failed is None else {"seed": tally.failed[0], "why": tally.failed[1]},
    }
    return tally.outcome, document


def _table(seeds: int, first: int) -> tuple[Outcome, Mapping[str, Any]]:
    rows: list[KillRow] = []
    click.echo(heading())
    for variant in MUTANTS:
        rows.append(kill_row(variant, seeds, first))
        click.echo(line(rows[-1]))
    for row in judge_rows(good_history()):
        rows.append(row)
        click.echo(line(row))
    outcomes = {row.outcome for row in rows}
    outcome = next(
        (outcome for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN) if outcome in outcomes), Outcome.HOLDS
    )
    return outcome, {"outcome": outcome.value, "first": first, "mutants": [row.document() for row in rows]}
