"""``migrator cutover plan``: what a cut-over would do and what stands in its way, for people and for programs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import click

from migrator.cli.check.item import Item, Outcome, count, of_error, of_finding, print_item
from migrator.cli.check.item import fields as item_fields
from migrator.cli.check.round_trip import round_trips
from migrator.cli.cutover.reads import gate_fields, print_gate
from migrator.cli.kept import keep, reason_option
from migrator.cli.options import OnSpark, json_option, on_spark, print_document, print_sql
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.core import cutover as rules
from migrator.model.codecs.cutover_codec import plan_to_json
from migrator.model.cutover.fence import FencePlan, Writer
from migrator.model.cutover.record import CutoverPlan, Phase, Side, Verify
from migrator.run.analysed import look
from migrator.run.commands.round_trip import ROWS
from migrator.run.migration import preflight
from migrator.wiring import cutover as wiring
from migrator.wiring import parts as wiring_parts
from migrator.wiring.gates.judge import LastVerdicts, last_verdicts
from migrator.wiring.gates.reads import ReadsGate, reads_gate
from migrator.wiring.revisions import prepare_both

FORMAT = 1
_VERIFIED = {
    Verify.CHANGED: "all rows that changed since their table's last verdict must be equal",
    Verify.IN_TIME: "rows that changed since their table's last verdict are compared as far as time allows",
    Verify.NOTHING: "nothing is compared",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One direction as it was looked at.

    Attributes:
        name: ``there`` or ``back``.
        source: where it reads, as a URL without a password.
        target: where it writes, likewise.
        items: what was found, in the order in which it was.
        refusals: how much of it refuses the plan.
    """

    name: str
    source: str
    target: str
    items: tuple[Item, ...]
    refusals: int


@dataclass(frozen=True, slots=True)
class FencedSide:
    """One side's fence as planned, who writes there now, why it can't be raised, and the SQL that opens the side."""

    side: Side
    fence: FencePlan
    writers: tuple[Writer, ...]
    refusals: tuple[str, ...]
    by_hand: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with all that an operator wants to know before it is accepted.

    Attributes:
        plan: the plan.
        sides: both of them.
        verdicts: the last verdict on each target table.
        reads: the gate of reads; None where reads go with the writes.
    """

    plan: CutoverPlan
    sides: tuple[FencedSide, ...]
    verdicts: LastVerdicts
    reads: ReadsGate | None


@click.command()
@on_spark
@click.option(
    "--rows",
    default=ROWS,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Try so many rows of each old table there and back.",
)
@click.option(
    "--accept", "accepted", is_flag=True, help="Accept the plan: from now on the new side is fenced."
)
@reason_option
@json_option
def plan(project: OnSpark, rows: int, accepted: bool, reason: str, as_json: bool) -> int:
    """Show what a cut-over would do and what stands in its way, with the SQL that opens either side by hand.

    Changes nothing without --accept. From then on the tool writes to the old side: its control tables, and what the
    way back brings.
    """
    settings = replace(project.settings, reason=reason)
    ways = _ways(project, rows, aloud=not as_json)
    fatal = sum(way.refusals for way in ways)
    found = None if fatal else _planned(settings)
    if found is not None:
        fatal = sum(len(one.refusals) for one in found.sides)
        if not as_json:
            _print(found)
    taken = found.plan if found is not None and accepted and not fatal else None
    if taken is not None:
        _accept(settings, taken)
    if as_json:
        print_document(document(settings.name, ways, found, accepted=taken is not None))
    elif fatal:
        click.echo(f"{fatal} refusal(s): this can't be accepted")
    elif taken is not None:
        click.echo("accepted: `migrator cutover start` begins once both ways keep up")
    return 2 if fatal else 0


def _ways(project: OnSpark, rows: int, aloud: bool) -> list[Way]:
    """Looks at both directions; rows are tried only where neither refuses. ``aloud``: prints what it finds."""
    found: list[Way] = []
    back = replace(project, settings=way_back(project.settings))
    for name, one in (("there", project), ("back", back)):
        source, target = one.settings.source.url(), one.settings.target.url()
        if aloud:
            click.echo(f"the way {name}: {source} -> {target}")
        items = []
        for item in _items(one, 0 if any(way.refusals for way in found) else rows):
            items.append(item)
            if aloud:
                print_item(item)
        refusals = count(items, Outcome.REFUSES) + count(items, Outcome.LOSSY)
        found.append(Way(name, source, target, tuple(items), refusals))
    return found


def _items(project: OnSpark, rows: int) -> Iterator[Item]:
    """Obstacles of a direction; of the way back also what comes back of ``rows`` that go there and back."""
    settings = project.settings
    parts = wiring_parts.parts(settings, project.master, project.options)
    findings = [*preflight(parts), *wiring.unlike(settings)]
    yield from map(of_finding, findings)
    if any(finding.fatal for finding in findings) or not settings.reversed or not rows:
        return
    looked = look(parts.spark, parts.mapping, parts.catalog, parts.target)
    yield from (of_error("mapping", problem) for problem in looked.analysed.problems)
    yield from round_trips(project, looked, [target.name for target in parts.mapping], rows)


def _planned(settings: Settings) -> Planned:
    found, surveys = wiring.planned(settings)
    both = wiring.fences(settings)
    sides = []
    for side in Side:
        fence, survey = found.fence(side), surveys[side]
        by_hand = tuple(f"{sql.rstrip().removesuffix(';')};" for sql in both[side].by_hand(fence))
        sides.append(FencedSide(side, fence, survey.writers, survey.refusals(fence), by_hand))
    reads = reads_gate(settings) if found.reads_hook else None
    return Planned(found, tuple(sides), last_verdicts(settings), reads)


def _print(found: Planned) -> None:
    click.echo("\n".join(_fences(found)))
    for one in found.sides:
        click.echo(f"\n-- opens the {one.side} side by hand, whatever stands of its fence:")
        print_sql("\n".join(one.by_hand))
    click.echo("\n".join(_course(found, time.time())))
    if found.reads is not None:
        print_gate(found.reads)


def _fences(found: Planned) -> Iterator[str]:
    for one in found.sides:
        yield (
            f"the {one.side} side: fence {one.fence.kind} on {len(one.fence.tables)} table(s),"
            f" {one.fence.login} may write"
        )
        yield from (f"    writes now: {writer.login} ({', '.join(writer.by)})" for writer in one.writers)
        yield from (f"    {click.style('refuses', fg='red')}: {refusal}" for refusal in one.refusals)


def _course(found: Planned, now_s: float) -> Iterator[str]:
    """Hooks, and what is compared; ``now_s``: seconds since 1970."""
    plan = found.plan
    yield f"\nhook: {plan.hook or 'none'}; a pause of more than {plan.pause_s:g} s is undone"
    yield f"before the other side is opened, {_VERIFIED[plan.verify]} (verify = {plan.verify})"
    if found.verdicts.unknown:
        yield f"    unknown: {found.verdicts.unknown}"
    for last in found.verdicts.tables:
        age = f", {now_s - last.at_us / 1e6:,.0f} s ago" if last.at_us else ""
        yield f"    {last.table}: {last.verdict or 'never verified'}{age}"
    yield f"hook for reads: {plan.reads_hook or 'none: they go with the writes'}"


def document(migration: str, ways: Sequence[Way], found: Planned | None, accepted: bool) -> dict[str, Any]:
    """The document of `migrator cutover plan --json` (docs/schemas/cutover-plan.schema.json).

    ``found`` is None where a direction refuses: no plan was worked out.
    """
    sides = () if found is None else found.sides
    return {
        "format": FORMAT,
        "migration": migration,
        "accepted": accepted,
        "refusals": sum(way.refusals for way in ways) + sum(len(one.refusals) for one in sides),
        "ways": [
            {
                "way": way.name,
                "source": way.source,
                "target": way.target,
                "items": [item_fields(item) for item in way.items],
            }
            for way in ways
        ],
        "plan": None if found is None else plan_to_json(found.plan),
        "sides": [
            {
                "side": one.side.value,
                "writers": [{"login": writer.login, "by": list(writer.by)} for writer in one.writers],
                "refusals": list(one.refusals),
                "by_hand": list(one.by_hand),
            }
            for one in sides
        ],
        "verdicts": [] if found is None else [asdict(one) for one in found.verdicts.tables],
        "verdicts_unknown": "" if found is None else found.verdicts.unknown,
        "reads": None if found is None or found.reads is None else gate_fields(found.reads),
    }


def _accept(settings: Settings, found: CutoverPlan) -> None:
    with_book = wiring.book(settings)
    try:
        prepare_both(settings)
        record = with_book.read()
        following = rules.accepted(record, found, secrets.token_hex(4))
        if record is None or record.phase is Phase.FINISHED:
            with_book.make(following)
        else:
            with_book.ask(following)
    finally:
        with_book.close()
    keep(settings, "cut-over", "the plan was accepted")
