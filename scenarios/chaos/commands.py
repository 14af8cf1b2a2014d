"""``migrator scenario run --project``: a project of the user's own under hazards, with reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from migrator.errors import ConfigError
from scenarios.chaos import given_rows, play
from scenarios.chaos import hazards as hazard_names
from scenarios.chaos.profiles import CHANGES, PROFILES
from scenarios.chaos.smallest import smaller
from scenarios.chaos.stage import Old
from scenarios.chaos.writes import counted
from scenarios.play.run_result import RunResult
from scenarios.rehearsal import copied
from scenarios.report import write
from scenarios.report.verdict import EXIT_CODES, verdict


def listed() -> str:
    """Every hazard with its sentence; those that fit no project come last, with the reason."""
    found = hazard_names.hazards()
    width = max(len(one.name) for one in found)
    lines: list[str] = []
    for one in found:
        if one.left_out and not any(line.startswith("Not for") for line in lines):
            lines += ["", "Not for projects:"]
        why = f" ({one.left_out})" if one.left_out else f" [{', '.join(one.engines)}]"
        lines.append(f"{one.name:<{width}}  {one.scenario.title}{why}")
    fit = sum(not one.left_out for one in found)
    return "\n".join([*lines, "", f"{fit} hazards fit a project, by the engine of its old side"])


def run_project(
    seed: int,
    out: Path,
    summary: Callable[[RunResult], str],
    *,
    project: Path,
    old_schema: str | None,
    sample: Path | None,
    rows: int,
    hazards: Sequence[str],
    profile: str | None,
    minutes: float | None,
    changes: int | None,
    clients: int,
    weights: str | None,
    query_log: Path | None,
    shrink: float = 0,
) -> int:
    """Makes the runs that are asked for and writes their report; the exit code. Raises ``MigratorError``."""
    names = [name for one in hazards for name in one.split(",") if name]
    if profile and names:
        raise ConfigError(
            "either hazards or a profile can be run",
            where=f"--profile {profile}, --hazard {','.join(names)}",
            remedy="give one of them",
        )
    if query_log is not None and weights is not None:
        raise ConfigError(
            "a query log says itself what is written",
            where=f"--query-log {query_log}, --weights {weights}",
            remedy="leave one of them out",
        )
    base = replace(order_of(project, old_schema, sample, rows, weights), query_log=query_log)
    engine = copied.wanted(base.config).kind("old")
    plan = PROFILES.get(profile or "")
    runs = hazard_names.profile(profile, engine, seed) if profile else [names]
    number = changes or (plan.changes if plan else CHANGES)
    orders = [
        replace(base, under=tuple(run), changes=number, clients=clients, seed=seed, out=out) for run in runs
    ]
    for order in orders:
        hazard_names.chosen(order.under, engine)  # names are checked before the first server starts
    budget = minutes if minutes is not None else plan.minutes if plan else None
    results = _results(orders, engine, budget, summary)
    for line in (line for one in results for line in smaller(one, shrink, _indented)):
        click.echo(line)
    click.echo()
    click.echo(write(results, out / "report"))
    click.echo(f"report: {out / 'report' / 'report.html'}")
    return EXIT_CODES[verdict(results)]


def _results(
    orders: Sequence[play.Order], engine: str, minutes: float | None, summary: Callable[[RunResult], str]
) -> list[RunResult]:
    """The results of all runs. The first begins anyway; those that the budget leaves undone are *unknown*."""
    results, began = list[RunResult](), time.monotonic()
    for order in orders:
        under = ", ".join(order.under) or "no hazard"
        if minutes is not None and results and time.monotonic() - began > minutes * 60:
            results.append(play.not_run(order, f"not run: the time budget of {minutes:g} minutes is over"))
            click.echo(f"{under} on {engine}: {results[-1].reason}")
            continue
        click.echo(f"{under} on {engine}, seed {order.seed} ...")
        results.append(play.run(order, _indented))
        click.echo(summary(results[-1]))
    return results


def _indented(said: str) -> None:
    click.echo(f"          {said}")


def order_of(
    project: Path, old_schema: str | None, sample: Path | None, rows: int, weights: str | None
) -> play.Order:
    """A run of a project without hazards. Raises ``ConfigError``."""
    if not old_schema:
        raise ConfigError(
            "the old schema isn't named",
            where="--old-schema",
            remedy="name a SQL file (`pg_dump -s`, `mysqldump --no-data`), a folder of revisions, or an address",
        )
    config = project if project.suffix == ".toml" else project / "migration.toml"
    order = play.Order(config, Old(old_schema, given_rows.files(sample), rows))
    if weights is None:
        return order
    return replace(order, weights=counted.weights(weights, copied.wanted(config).kind("old")))
