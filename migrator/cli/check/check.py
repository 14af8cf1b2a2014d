"""``migrator check``."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial

import click

from migrator.cli.check.item import (
    Item,
    Outcome,
    count,
    document,
    exit_code,
    of_error,
    of_finding,
    print_item,
)
from migrator.cli.check.round_trip import round_trips
from migrator.cli.options import OnSpark, either_way
from migrator.cli.phases import say
from migrator.config.project import Settings
from migrator.errors import TargetError
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
from migrator.wiring.spark import keep_classes
from transforms.analysis.plan import MappingPlan
from transforms.load import read_mapping
from transforms.on_spark.explained import grain, links
from transforms.on_spark.session import training

GRAIN_ROWS = 200
"""Number of rows of its table of which the grains are tried, unless somebody says otherwise."""
VALUE_SECONDS = 5.0
"""Seconds for which each source table is searched for values that don't fit, unless somebody says otherwise."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """The rows and the time that a check may take.

    Attributes:
        grain_rows: source rows of each joined target whose grains are tried; 0: none.
        value_seconds: of search through each source table for values that don't fit; 0: not at all.
        rows: of each old table that are mapped there and back.
    """

    grain_rows: int
    value_seconds: float
    rows: int


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
@click.option("--json", "as_json", is_flag=True, help="Machine-readable: one document at the end.")
@either_way
def check(project: OnSpark, grain_rows: int, value_seconds: float, rows: int, as_json: bool) -> int:
    """Preflight: everything that stands in the way of a run, all at once, each with its remedy. Changes nothing.

    Of joined targets some grains are mapped together and apart: a row that comes out otherwise shows a wrong grain.
    Some rows of each table, and those that the source suspects, are mapped and tried by the target.
    With --reverse rows of the old tables are mapped there and back: what comes back otherwise is named by column.
    """
    settings = project.settings
    kept = replace(settings, spark=replace(settings.spark, keep_classes=True))
    items = []
    for item in _items(replace(project, settings=kept), Amounts(grain_rows, value_seconds, rows)):
        items.append(item)
        if not as_json:
            print_item(item)
    code = exit_code(items)
    if as_json:
        click.echo(json.dumps(document(project.settings.name, items, code), indent=2))
    else:
        click.echo(f"{count(items, Outcome.REFUSES)} refusal(s), {count(items, Outcome.WARNING)} warning(s)")
    if training():
        say("keeping Spark's classes for quicker starts, once on this machine")
        keep_classes()
    return code


def _items(project: OnSpark, amounts: Amounts) -> Iterator[Item]:
    """All that is to be said, as it is found; rows are only read where nothing else refuses."""
    settings = project.settings
    refuse_half(settings)
    load = partial(load_applied, settings, load=read_mapping)
    parts = wiring.parts(settings, project.master, project.options, load)
    found = []
    say("asking both servers")
    for item in _without_rows(parts, settings):
        found.append(item)
        yield item
    say("starting Spark, analysing the mapping")
    looked = look(parts.spark, parts.mapping, parts.catalog, parts.target)
    refused = {item.subject for item in found if item.outcome is Outcome.REFUSES}
    for item in _of_functions(looked, refused):
        found.append(item)
        yield item
    if not count(found, Outcome.REFUSES):
        ledger = wiring_target.peek(settings)
        yield from _of_rows(parts, looked, ledger, amounts)
        yield from _of_nexts(parts, ledger)
    if settings.reversed:
        say("mapping old rows there and back")
        declared = [target.name for target in parts.mapping.targets]
        yield from round_trips(project, looked, declared, amounts.rows)


def _without_rows(parts: Parts, settings: Settings) -> Iterator[Item]:
    """Findings of the servers, of the target's revision and of the mapping's files."""
    yield from map(of_finding, preflight(parts))
    url = settings.target.url()
    try:
        if problem := wiring.revision_problem(settings):
            yield Item(Outcome.REFUSES, "revision", url, problem)
    except TargetError as error:  # what else is wrong is told all the same
        yield of_error("revision", error, url)
    for file in parts.mapping.aside:
        text = "it is no part of the mapping: no line of it says `-- target: <table>`"
        yield Item(Outcome.NOTE, "mapping", file.name, text)


def _of_functions(looked: Looked, refused: Collection[str]) -> Iterator[Item]:
    """All that is wrong with the mapping's functions, and with tables that no finding of ``refused`` names."""
    analysed = looked.analysed
    yield from (of_error("mapping", problem) for problem in analysed.problems)
    for name, error in looked.refused.items():
        if not any(name == one.rpartition(".")[2] for one in refused):
            yield of_error("table", error)
    for name, tables in analysed.untried.items():
        text = f"it wasn't looked at: {', '.join(tables)} can't be read, see above"
        yield Item(Outcome.NOTE, "mapping", name, text)


def _of_rows(parts: Parts, looked: Looked, ledger: Ledger | None, amounts: Amounts) -> Iterator[Item]:
    """The functions and their effect; grains that are wrong, values that don't fit, rows of another mapping."""
    structure = looked.structure
    plans = looked.analysed.plans
    yield from map(of_finding, against_ledger(parts, ledger, list(structure.new.values()), plans))
    for plan in plans.values():
        name = plan.target.name
        say(f"{name}: trying grains and values")
        verdict = prove(parts, plan, amounts.grain_rows) if plan.reaches and amounts.grain_rows else None
        yield _mapped(plan, looked, verdict)
        if verdict is not None and verdict.wrong:
            yield Item(Outcome.REFUSES, "grain", name, verdict.wrong, remedy=REMEDY)
            continue
        if verdict is not None and verdict.untried:
            yield Item(Outcome.WARNING, "grain", name, f"it wasn't tried: {verdict.untried}")
        sampled = None if verdict is None else verdict.rows
        yield from map(of_finding, unfit(parts, plan, structure.new[name], amounts.value_seconds, sampled))


def _mapped(plan: MappingPlan, looked: Looked, verdict: Verdict | None) -> Item:
    """A function and its kind; of a joined target its grains, and how many were tried."""
    keys = {table: ", ".join(looked.structure.old[table].key) for table in plan.reads}
    reads = ", ".join(f"{table} (key {key})" for table, key in keys.items())
    details = []
    for reach in plan.reaches:
        ways = "; ".join(text for _, text in links(reach))
        details.append(f"grain {grain(reach)}{f'; links {ways}' if ways else ''}")
    if verdict is not None and not verdict.wrong and not verdict.untried:
        details.append(f"{verdict.grains} grains tried, together and apart")
    text = f"{plan.kind.value}, from {reads or 'constants'}"
    return Item(Outcome.OK, "mapping", plan.target.name, text, details=tuple(details))


def _of_nexts(parts: Parts, ledger: Ledger | None) -> Iterator[Item]:
    """Problems of functions that are declared as next, or their differences to those in force."""
    for one in next_checks(parts, ledger):
        yield from map(of_finding, one.problems)
        if not one.problems:
            text = f"differs from the one in force: {one.differs}" if one.differs else "makes the same rows"
            yield Item(Outcome.OK, "next", one.target, f"its next function {text}")
