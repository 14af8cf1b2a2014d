"""``migrator verify``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import join

import click

from migrator.cli.options import (
    SECONDS,
    Amount,
    OnSpark,
    either_way,
    print_report,
    repair_words,
    report_json_option,
)
from migrator.cli.phases import say
from migrator.cli.signals import stop_on_signals
from migrator.config.project import Settings
from migrator.errors import MigratorError, VerifyError
from migrator.run.failure import Stopping
from migrator.wiring import parts as wiring
from migrator.wiring import target as wiring_target
from migrator.wiring.gates.judge import sides
from migrator.wiring.spark import spark
from verify.tables.continuous import DEFAULT_RATE, Rotation
from verify.tables.coverage import Coverage, note_coverage, read_coverage
from verify.tables.covered import covered
from verify.tables.report import repair_command, text_report
from verify.tables.result import VerifyResult
from verify.tables.rounds.live import MAX_ROUNDS
from verify.tables.rounds.watch import WITHIN_S
from verify.tables.run import verify as compare
from verify.tables.sweeps.chunk_sweep import CHUNK_ROWS
from verify.tables.sweeps.lanes import LANES, LANES_MAX
from verify.verdict import Verdict

_NICENESS = 19
_ACTS = 20
"""The latest acts that a report lists."""
EXIT_CODES = {Verdict.EQUAL: 0, Verdict.DIFFERENT: 1, Verdict.UNKNOWN: 3}


@click.command()
@either_way
@click.option(
    "--table", "tables", multiple=True, help="A target table to verify; may be repeated. Default: all."
)
@click.option(
    "--wait",
    "wait_s",
    default=60.0,
    show_default=True,
    type=SECONDS,
    help="Longest wait for the target, in seconds.",
)
@click.option(
    "--within",
    "within_s",
    default=None,
    show_default=f"{WITHIN_S:g}; with --continuous no limit",
    type=Amount(min=0, min_open=True),
    help="Seconds for everything; what isn't settled by then is unknown. Of --continuous for each table.",
)
@click.option(
    "--max-rounds",
    default=MAX_ROUNDS,
    show_default=True,
    type=click.IntRange(min=1),
    help="Rounds at most, for keys that keep changing.",
)
@click.option(
    "--whole",
    is_flag=True,
    help="One snapshot of each side, held while it is read. Default: a short one for each chunk.",
)
@click.option(
    "--chunk-rows",
    default=CHUNK_ROWS,
    show_default=True,
    type=click.IntRange(min=1),
    help="Source rows in a chunk: what is read in one view at most.",
)
@click.option(
    "--lanes",
    default=LANES,
    show_default=True,
    type=click.IntRange(1, LANES_MAX),
    help="Sessions on each side that hash a large table at once; 1 spares the source. Of --continuous always 1.",
)
@click.option(
    "--continuous", is_flag=True, help="Table after table until stopped; what `migrator run --verify` starts."
)
@click.option(
    "--rate",
    default=DEFAULT_RATE,
    show_default=True,
    type=Amount(min=0, min_open=True),
    help="Of --continuous: rows of both sides read a second, on average.",
)
@report_json_option
def verify(
    project: OnSpark,
    tables: tuple[str, ...],
    wait_s: float,
    within_s: float | None,
    max_rounds: int,
    whole: bool,
    chunk_rows: int,
    lanes: int,
    continuous: bool,
    rate: float,
    as_json: bool,
) -> int:
    """Compare mapping(source) with the target exactly, also while both change."""
    settings = project.settings

    def compared(names: Sequence[str] | None, reports: Path) -> VerifyResult:
        bounds = Bounds(
            wait_s,
            within_s if continuous or within_s is not None else WITHIN_S,
            max_rounds,
            0 if whole else chunk_rows,
            1 if continuous else lanes,
        )
        return verified(project, names, reports, bounds, (lambda _: None) if continuous else say)

    if continuous:
        names = tables or tuple(target.name for target in wiring.mapping(settings))
        ended, parent = Stopping(), os.getppid()
        os.nice(_NICENESS)
        stop_on_signals(ended)

        def wait(seconds: float) -> bool:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline and os.getppid() == parent:
                if ended.wait(0.5):
                    return True
            return os.getppid() != parent  # whoever started it is gone

        rotation = Rotation(
            names, lambda name, folder: compared([name], folder), settings.reports(), rate, wait, click.echo
        )
        rotation.run()
        return 0
    result = compared(tables or None, settings.reports())
    note(result, settings.reports())
    mend = repair_command(result, settings.reports(), _mend(settings))
    print_report(settings.reports(), "verify", [text_report(result, mend)], as_json)
    return EXIT_CODES[result.verdict]


def note(result: VerifyResult, reports: Path) -> None:
    """Remembers the verdict of each table, for `status`, the observer and cut-overs."""
    before = Coverage()
    with suppress(VerifyError):  # one that can't be read is written anew
        before = read_coverage(reports) or before
    note_coverage(
        [covered(own, result, reports, reports, before.of(own.target)) for own in result.tables],
        before.problem,
        reports,
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a verification, as the arguments of ``verify.tables.run.verify`` that have their names."""

    wait_s: float = 60.0
    within_s: float | None = WITHIN_S
    max_rounds: int = MAX_ROUNDS
    chunk_rows: int = CHUNK_ROWS
    lanes: int = LANES


def verified(
    project: OnSpark,
    names: Sequence[str] | None,
    reports: Path,
    bounds: Bounds = Bounds(),
    say: Callable[[str], None] = say,
) -> VerifyResult:
    """Verifies the named target tables, or all, and writes the reports. ``say`` prints what it waits for."""
    settings = project.settings
    return compare(
        *sides(settings),
        settings.name,
        settings.mapping,
        names,
        lambda: spark(settings, project.master, project.options),
        reports,
        wait_s=bounds.wait_s,
        max_rounds=bounds.max_rounds,
        chunk_rows=bounds.chunk_rows,
        lanes=bounds.lanes,
        within_s=bounds.within_s,
        say=say,
        mend=_mend(settings),
        acts=_acts(settings),
    )


def _acts(settings: Settings) -> list[str]:
    """Returns the latest acts; a history that can't be read keeps nobody from judging."""
    try:
        return [act.line() for act in wiring_target.acts(settings).newest(_ACTS)]
    except MigratorError as error:
        return [f"unknown: {error}"]


def _mend(settings: Settings) -> str:
    return join(repair_words(settings))
