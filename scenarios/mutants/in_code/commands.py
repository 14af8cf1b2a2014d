"""``migrator scenario code-mutants``: single changes to the code; the fast tests must notice each."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from migrator.errors import ConfigError
from scenarios import json_file
from scenarios.mutants.in_code.change import ROOT, CodeMutant
from scenarios.mutants.in_code.core import CORE
from scenarios.mutants.in_code.cutover import CUTOVER
from scenarios.mutants.in_code.event_log import EVENT_LOG
from scenarios.mutants.in_code.fence import FENCE
from scenarios.mutants.in_code.judge import JUDGE
from scenarios.mutants.in_code.mapping import MAPPING
from scenarios.mutants.in_code.run import RUN
from scenarios.mutants.in_code.trial import CodeRow, overall, tried, unbroken
from scenarios.mutants.in_code.way_back import WAY_BACK
from verify.history.result import Outcome

CODE_MUTANTS = (*CORE, *EVENT_LOG, *RUN, *JUDGE, *MAPPING, *FENCE, *CUTOVER, *WAY_BACK)
"""The changes of all stations. ``tests/unit/scenarios/test_code_mutants.py`` checks that each still fits the code."""
EXIT_CODES = {Outcome.HOLDS: 0, Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}
MOST_SURVIVORS = 0.05
"""The share of mutants that may survive, each named."""
_SAID = {Outcome.HOLDS: "killed", Outcome.VIOLATED: "SURVIVED", Outcome.UNKNOWN: "unknown"}


@click.command("code-mutants")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Tried at a time.")
@click.option(
    "--json", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write the table there."
)
@click.option("--list", "list_", is_flag=True, help="Print the mutants and try none.")
@click.pass_context
def code_mutants(
    context: click.Context, words: tuple[str, ...], workers: int, path: Path | None, list_: bool
) -> None:
    """Make single changes to the code, and run the tests that should notice each.

    WORD chooses the mutants that have one of these words in their path or name. Exit codes: 0 fewer than a
    twentieth survived, 1 more did, 3 some could not be judged.
    """
    mutants = chosen(words)
    if list_:
        for mutant in mutants:
            click.echo(
                f"{mutant.path}: {mutant.name}"
                + (f" (equivalent: {mutant.equivalent})" if mutant.equivalent else "")
            )
        click.echo(f"{len(mutants)} mutants")
        return
    if not (ROOT / "tests").is_dir():
        raise ConfigError(
            "the tests aren't here", where=str(ROOT), remedy="run this in a checkout of the project"
        )
    base = unbroken(mutants)
    if base.outcome is not Outcome.VIOLATED:  # a test that fails without a change would notice everything
        raise ConfigError("the tests fail on the code as it is", where=base.said, remedy="correct that first")
    # Beside the code, so that files can be shared by links.
    with tempfile.TemporaryDirectory(prefix=".mutants-", dir=ROOT, ignore_cleanup_errors=True) as scratch:
        rows = tried(mutants, Path(scratch), workers, lambda row: click.echo(line(row)))
    survivors = [row for row in rows if row.run.outcome is Outcome.VIOLATED]
    equivalent = len(mutants) - len(rows)
    outcome = overall(rows, MOST_SURVIVORS)
    share = len(survivors) / max(1, len(rows))
    click.echo(
        f"{len(survivors)} of {len(rows)} survived ({share:.1%}), {equivalent} are equivalent to the code"
    )
    if path is not None:
        document = {
            "outcome": outcome.value,
            "mutants": [row.document() for row in rows],
            "equivalent": [
                {"name": mutant.name, "why": mutant.equivalent} for mutant in mutants if mutant.equivalent
            ],
        }
        json_file.write(path, document)
    context.exit(EXIT_CODES[outcome])


def chosen(words: tuple[str, ...]) -> tuple[CodeMutant, ...]:
    """The mutants with one of these words in path or name; all without words. Raises ``ConfigError`` if none
    has."""
    found = tuple(
        mutant
        for mutant in CODE_MUTANTS
        if not words or any(word in mutant.path or word in mutant.name for word in words)
    )
    if not found:
        raise ConfigError(
            "no mutant has such a name",
            where=" ".join(words),
            remedy="see migrator scenario code-mutants --list",
        )
    return found


def line(row: CodeRow) -> str:
    """A row for a terminal."""
    return (
        f"{_SAID[row.run.outcome]:8} {row.run.elapsed_s:5.1f} s  {row.mutant.path}: {row.mutant.name}"
        f"\n{'':17} {row.run.said}"
    )
