"""``migrator scenario``: list, run, replay, mutants and more. Exit codes: 0 holds, 1 violated, 2 error, 3
unknown."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click

from migrator.cli.signals import unwinding
from migrator.errors import ConfigError
from migrator.own_modules import own
from scenarios.chaos.options import project_options
from scenarios.play import catalog_files, pairs
from scenarios.play.run_result import RunResult
from scenarios.scenario import PER_CHANGE, Engine, Scenario
from verify.history import timeline
from verify.history.result import Outcome

_EXIT_CODES = {Outcome.HOLDS: 0, Outcome.VIOLATED: 1, Outcome.UNKNOWN: 3}
_COLOURS = {Outcome.HOLDS: "green", Outcome.VIOLATED: "red", Outcome.UNKNOWN: "yellow"}
_ELSEWHERE = {
    "code-mutants": own("scenarios.mutants.in_code.commands"),
    "mutate-mapping": own("scenarios.mutants.mapping_commands"),
    "mutants": own("scenarios.mutants.commands"),
    "simulate": own("scenarios.mutants.simulated"),
    "soak": own("scenarios.soak.commands"),
    "torture": own("scenarios.torture.commands"),
}


class _Group(click.Group):
    """Imports simulation, broken variants and the torture suite only when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(
            importlib.import_module(_ELSEWHERE[cmd_name]), cmd_name.replace("-", "_")
        )
        return found


@click.group(cls=_Group)
def scenario() -> None:
    """Prove the pipeline against hazards: concurrent writers, faults, recorded histories, checkers D1 to D8."""


class _Job(NamedTuple):
    """One run to make."""

    scenario: Scenario
    engine: Engine
    yaml: str


@scenario.command(name="list")
def list_() -> None:
    """Every scenario of the catalog: engines, hazards, what it waits for, and whether every change runs it."""
    found = catalog_files.all()
    width = max((len(scenario.name) for scenario in found), default=0)
    for scenario in found:
        notes = [
            "hazards " + ",".join(map(str, scenario.hazards)) if scenario.hazards else "",
            "per change" if scenario.per_change else "",
            f"waits for: {scenario.waits_for}" if scenario.waits_for else "",
        ]
        engines = "+".join(scenario.engines)
        click.echo(f"{scenario.name:<{width}}  {engines:<18}  {'; '.join(filter(None, notes))}".rstrip())
        click.echo(f"{'':<{width}}  {scenario.title}")
    waiting = sum(bool(scenario.waits_for) for scenario in found)
    click.echo(f"{len(found)} scenarios, {waiting} of them wait for work to come")


@scenario.command()
@click.argument("names", nargs=-1, metavar="[NAME|FILE.yaml]...")
@click.option("--per-change", is_flag=True, help="The scenarios that every change runs.")
@click.option("--all", "all_", is_flag=True, help="The whole catalog.")
@click.option("--engine", type=click.Choice(get_args(Engine)), help="Only on this source.")
@click.option("--seed", default=1, show_default=True, help="Seed of writers, faults, observers, pairs.")
@click.option("--pairs", "pairs_", default=0, help="So many pairs of scenarios, drawn under the seed.")
@click.option("--mutant", default="", help="Play it with this broken variant; a checker must catch it.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path(".scenarios"),
    show_default=True,
    help="Folder for bundles and the report.",
)
@project_options
def run(
    names: tuple[str, ...],
    per_change: bool,
    all_: bool,
    engine: Engine | None,
    seed: int,
    pairs_: int,
    mutant: str,
    out: Path,
    **of_project: Any,
) -> int:
    """Play scenarios on embedded servers, record what happens, and judge it: of the catalog, or your own project."""
    click.get_current_context().with_resource(unwinding())
    if of_project["project"] is not None or of_project["hazards"]:
        return _of_project(seed, out, bool(names or per_change or all_ or pairs_ or mutant), of_project)
    jobs = _jobs(names, per_change, all_, engine, seed, pairs_)
    # Spark, drivers and servers' clients only now: listing and replaying need none of them.
    runner = importlib.import_module(own("scenarios.play.runner"))
    report = importlib.import_module(own("scenarios.report"))
    verdict = importlib.import_module(own("scenarios.report.verdict")).verdict
    for job in jobs:
        runner.check(job.scenario)
    results: list[RunResult] = []
    for job in jobs:
        click.echo(f"{job.scenario.name} on {job.engine}, seed {seed}{', ' + mutant if mutant else ''} ...")
        results.append(runner.run(job.scenario, job.engine, seed, out, job.yaml, mutant))
        click.echo(_summary(results[-1]))
    if not results:
        click.echo("nothing was run")
        return _EXIT_CODES[Outcome.UNKNOWN]
    click.echo()
    tables = replace(report.tables_beside(out), waiting=report.waiting(catalog_files.all()))
    click.echo(report.write(results, out / "report", tables))
    click.echo(f"report: {out / 'report' / 'report.html'}")
    return _EXIT_CODES[verdict(results, tables)]


def _of_project(seed: int, out: Path, of_catalog: bool, options: dict[str, Any]) -> int:
    chaos = importlib.import_module(own("scenarios.chaos.commands"))
    if "list" in options["hazards"]:
        click.echo(chaos.listed())
        return 0
    if of_catalog or options["project"] is None:
        raise ConfigError(
            "a project and scenarios of the catalog can't be run together",
            where="--project",
            remedy="give --project with --hazard or --profile, or name scenarios of the catalog",
        )
    return int(chaos.run_project(seed, out, _summary, **options))


@scenario.command()
@click.argument("folder", metavar="BUNDLE", type=click.Path(path_type=Path))
def replay(folder: Path) -> int:
    """Judge a recorded run again, without servers, and compare with the recorded verdict."""
    replayed = importlib.import_module(own("scenarios.play.replay")).replay(folder)
    found, recorded = replayed.found, replayed.recorded
    click.echo(_summary(found))
    if replayed.same:
        click.echo("the verdict is the recorded one")
    else:
        said = f"; {recorded.reason}" if recorded.reason else ""
        click.echo(f"THE VERDICT IS NOT THE RECORDED ONE, which was {recorded.outcome.value}{said}")
        for now, then in zip(found.checks, recorded.checks, strict=False):
            if now != then:
                click.echo(
                    f"  {now.code}: {now.outcome.value} ({now.violations}), recorded {then.outcome.value}"
                )
    return _EXIT_CODES[found.outcome] or (0 if replayed.same else _EXIT_CODES[Outcome.VIOLATED])


def _jobs(
    names: Sequence[str], per_change: bool, all_: bool, engine: Engine | None, seed: int, pairs_: int
) -> list[_Job]:
    """The runs that are asked for; says which ones wait. Raises ``ConfigError``."""
    catalog = catalog_files.all() if per_change or all_ or pairs_ else []
    paths = [catalog_files.path_of(name) for name in names]
    chosen = [scenario for scenario in catalog if all_ or (per_change and scenario.per_change)]
    paths += [path for scenario in chosen if (path := catalog_files.path_of(scenario.name)) not in paths]
    texts = [(catalog_files.load(path), catalog_files.text_of(path)) for path in paths]
    able = [scenario for scenario in catalog if engine is None or engine in scenario.engines]
    texts += [(pair, pairs.scenario_yaml(pair)) for pair in pairs.pairs(able, pairs_, seed)]
    if not texts:
        raise ConfigError(
            "no scenario was named",
            remedy="name some (`migrator scenario list`), or ask for --per-change, --all or --pairs N",
        )
    jobs = []
    for found, text in texts:
        if found.waits_for:
            click.echo(f"{found.name} waits for: {found.waits_for}; until then: {found.until_then}")
            continue
        narrow = per_change and not all_ and engine is None and found.name not in names
        wanted = PER_CHANGE if narrow else found.engines if engine is None else (engine,)
        jobs += [_Job(found, runs_on, text) for runs_on in found.engines if runs_on in wanted]
        if engine is not None and engine not in found.engines:
            click.echo(f"{found.name} is not for {engine}")
    return jobs


def _summary(result: RunResult) -> str:
    """Describes a run: one line of verdict, one of counts; for a violation the witness with its timeline."""
    name = f"{result.scenario.name} [{result.engine}{', ' + result.mutant if result.mutant else ''}]"
    word = click.style(f"{result.outcome.value:<8}", fg=_COLOURS[result.outcome])
    checked = " ".join(f"{check.code}:{_SIGNS[check.outcome]}({check.checked:,})" for check in result.checks)
    lines = [f"{word}  {name}  {result.elapsed_s:.1f} s  {result.ending}  {checked}".rstrip()]
    if result.counts:
        lines.append(
            "          " + ", ".join(f"{number:,} {what}" for what, number in result.counts.items() if number)
        )
    if result.reason:
        lines.append(f"          {result.reason}")
    if result.error and result.error not in result.reason:
        lines.append(f"          error: {result.error}")
    for check in result.checks:
        if check.witnesses:
            text = timeline.text(check.witnesses[0]).rstrip()
            lines += ["", f"          {check.code} {check.title}: {check.violations:,} violations, e.g."]
            lines += [f"          {line}" for line in text.splitlines()]
    lines.append(f"          bundle: {result.bundle}")
    return "\n".join(lines)


_SIGNS = {Outcome.HOLDS: "ok", Outcome.VIOLATED: "VIOLATED", Outcome.UNKNOWN: "?"}
