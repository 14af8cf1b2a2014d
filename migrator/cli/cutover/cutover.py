"""``migrator cutover plan | reads | start | status | abort | back | finish | opened``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from migrator.cli.check.item import exit_code, of_error, of_finding, print_item
from migrator.cli.check.round_trip import round_trips
from migrator.cli.cutover.accepted import accepted as _known
from migrator.cli.cutover.followed import looks
from migrator.cli.cutover.reads import print_gate, reads
from migrator.cli.cutover.standing import line as line_of
from migrator.cli.cutover.standing import nobody_leads, print_standing, status
from migrator.cli.kept import keep, reason_option
from migrator.cli.options import SECONDS, OnSpark, config_option, json_option, on_spark
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.core import cutover as rules
from migrator.model.cutover.fence import Survey
from migrator.model.cutover.record import CutoverPlan, Phase, Record, Side, Verify, Wanted
from migrator.ports.cutover import CutoverBook
from migrator.run.analysed import look
from migrator.run.commands.round_trip import ROWS
from migrator.run.cutover.patient import PatientBook
from migrator.run.migration import preflight
from migrator.wiring import cutover as wiring
from migrator.wiring import parts as wiring_parts
from migrator.wiring.gates.judge import verdicts
from migrator.wiring.gates.reads import reads_gate
from migrator.wiring.revisions import prepare_both

_VERIFIED = {
    Verify.CHANGED: "all rows that changed since their table's last verdict must be equal",
    Verify.IN_TIME: "rows that changed since their table's last verdict are compared as far as time allows",
    Verify.NOTHING: "nothing is compared",
}
_LOSSY, _FAILED = 1, 2
"""Exit codes of a round trip that refuse a plan."""


@dataclass(frozen=True, slots=True)
class _Follow:
    """The time for which a step is followed; ``aside``: its lines go to standard error."""

    wait_s: float
    aside: bool


@click.group()
def cutover() -> None:
    """Hand writing over to the new side, and back as often as wanted, until it is finished.

    The leader (`migrator run`) takes the steps; these commands tell it what is wanted. What was asked for is durable:
    a leader that is killed goes on where it was, or opens the side again that was open.
    """


@cutover.command()
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
def plan(project: OnSpark, rows: int, accepted: bool, reason: str) -> int:
    """Show what a cut-over would do and what stands in its way, with the SQL that opens either side by hand.

    Changes nothing without --accept. From then on the tool writes to the old side: its control tables, and what the
    way back brings.
    """
    settings = replace(project.settings, reason=reason)
    fatal = _print_ways(project, rows)
    if fatal:
        click.echo(f"{fatal} refusal(s): this can't be accepted")
        return 2
    found, surveys = wiring.planned(settings)
    for side in Side:
        fatal += _print_fence(side, found, surveys[side])
    by_hand = wiring.fences(settings)
    for side in Side:
        click.echo(f"\n-- opens the {side} side by hand, whatever stands of its fence:")
        for statement in by_hand[side].by_hand(found.fence(side)):
            click.echo(f"{statement.rstrip().removesuffix(';')};")
    click.echo(f"\nhook: {found.hook or 'none'}; a pause of more than {found.pause_s:g} s is undone")
    _print_verdicts(settings, found)
    click.echo(f"hook for reads: {found.reads_hook or 'none: they go with the writes'}")
    if found.reads_hook:
        print_gate(reads_gate(settings))
    if fatal:
        click.echo(f"{fatal} refusal(s): this can't be accepted")
        return 2
    if accepted:
        _accept(settings, found)
    return 0


def _print_ways(project: OnSpark, rows: int) -> int:
    """Prints what stands in either way, and what comes back of rows that go there and back; how much refuses."""
    fatal = 0
    back = replace(project, settings=way_back(project.settings))
    for name, one in (("there", project), ("back", back)):
        parts = wiring_parts.parts(one.settings, one.master, one.options)
        findings = [*preflight(parts), *wiring.unlike(one.settings)]
        click.echo(f"the way {name}: {one.settings.source.url()} -> {one.settings.target.url()}")
        for finding in findings:
            print_item(of_finding(finding))
        fatal += sum(finding.fatal for finding in findings)
        if fatal or not one.settings.reversed:
            continue
        looked = look(parts.spark, parts.mapping, parts.catalog, parts.target)
        for problem in looked.analysed.problems:
            print_item(of_error("mapping", problem))
        trips = list(round_trips(one, looked, [target.name for target in parts.mapping], rows))
        for item in trips:
            print_item(item)
        fatal += len(looked.analysed.problems) + (exit_code(trips) in (_LOSSY, _FAILED))
    return fatal


def _print_fence(side: Side, found: CutoverPlan, survey: Survey) -> int:
    """Prints a side's fence; the number of reasons why it can't be raised."""
    fence = found.fence(side)
    refusals = survey.refusals(fence)
    click.echo(
        f"the {side} side: fence {fence.kind} on {len(fence.tables)} table(s), {fence.login} may write"
    )
    for writer in survey.writers:
        click.echo(f"    writes now: {writer.login} ({', '.join(writer.by)})")
    for refusal in refusals:
        click.echo(f"    {click.style('refuses', fg='red')}: {refusal}")
    return len(refusals)


def _print_verdicts(settings: Settings, found: CutoverPlan) -> None:
    """Prints how much is known to be equal; a switch begins only with verdicts on all tables."""
    click.echo(f"before the other side is opened, {_VERIFIED[found.verify]} (verify = {found.verify})")
    for line in verdicts(settings, time.time()):
        click.echo(f"    {line}")


def _accept(settings: Settings, found: CutoverPlan) -> None:
    with_book = wiring.book(settings)
    try:
        prepare_both(settings)
        record = with_book.read()
        rules.may_accept(record, found)
        if record is None or record.phase is Phase.FINISHED:
            with_book.make(Record(found))
        else:
            with_book.ask(record.changed(plan=found))
    finally:
        with_book.close()
    keep(settings, "cut-over", "the plan was accepted")
    click.echo("accepted: `migrator cutover start` begins once both ways keep up")


def _asking(wanted: Wanted, settings: Settings, wait_s: float, as_json: bool) -> int:
    """Puts an operator's word into the record, and follows what becomes of it; the exit code.

    ``as_json``: standard output is for the document at the end.
    """
    with_book = PatientBook(partial(wiring.book, settings))
    try:
        record = _known(with_book)
        with_book.ask(rules.asked(record, wanted))
        keep(settings, "cut-over", f"{wanted}, the {record.open_side} side being open")
        if wanted is Wanted.ABORT:  # which must not wait for a run that may not be able to start
            undone = wiring.undone_unled(settings, "an operator aborted it", True)
            click.echo(undone or "the leader was told", err=as_json)
        return _followed(with_book, record, wanted, settings, _Follow(wait_s, as_json))
    finally:
        with_book.close()


def _followed(
    with_book: CutoverBook, before: Record, wanted: Wanted, settings: Settings, follow: _Follow
) -> int:
    goal = {
        Wanted.START: Side.NEW,
        Wanted.BACK: Side.OLD,
        Wanted.ABORT: before.open_side,
        Wanted.FINISH: before.open_side,
    }[wanted]
    shown = ""
    for record in looks(with_book, follow.wait_s):
        line = line_of(record)
        if line != shown:
            click.echo(line, err=follow.aside)
            shown = line
        if record.wanted is Wanted.NOTHING and record.phase in (Phase.IDLE, Phase.FINISHED):
            return 0 if record.open_side is goal and (wanted is Wanted.ABORT or not record.reason) else 1
    still = f"it is still under way{nobody_leads(settings)}: `migrator cutover status` says more"
    click.echo(still, err=follow.aside)
    return 3


def _command(wanted: Wanted, text: str) -> Callable[[Path, str, float, bool], int]:
    """A command that asks for something and waits for it."""

    @cutover.command(wanted.value, help=text)
    @config_option
    @reason_option
    @click.option(
        "--wait",
        "wait_s",
        default=120.0,
        show_default=True,
        type=SECONDS,
        help="Longest wait for the leader, in seconds; what was asked for stays asked for.",
    )
    @json_option
    def asking(config: Path, reason: str, wait_s: float, as_json: bool) -> int:
        settings = replace(configuration.load(config), reason=reason)
        code = _asking(wanted, settings, wait_s, as_json)
        if as_json:
            print_standing(settings)
        return code

    return asking


cutover.add_command(reads)
cutover.add_command(status)
start = _command(
    Wanted.START,
    "Fence the old side, bring over what it has, and open the new one; undone by itself past its time limit.",
)
back = _command(
    Wanted.BACK,
    "The same the other way: fence the new side, bring over what it has, open the old one. Nothing is lost.",
)
abort = _command(
    Wanted.ABORT, "Undo a switch that is under way, as long as the other side isn't being opened."
)
finish = _command(
    Wanted.FINISH,
    "Give the way back up: the new side is the only one from now on, and the old one stays fenced. While the old side"
    " is open: give the plan up, the new side's fence is opened.",
)


@cutover.command()
@config_option
@reason_option
@json_option
@click.argument("side", type=click.Choice([side.value for side in Side]))
def opened(config: Path, reason: str, as_json: bool, side: str) -> int:
    """Say that SIDE was opened by hand, with the SQL that the plan printed: it is the open one from now on.

    Whatever was under way is given up, and the leader fences the other side. Changes of that one that weren't carried
    across by then wait, and are named by `status` and the run.
    """
    settings = replace(configuration.load(config), reason=reason)
    with_book = wiring.book(settings)
    try:
        with_book.ask(rules.opened(_known(with_book), Side(side)))
    finally:
        with_book.close()
    keep(settings, "cut-over", f"the {side} side was opened by hand")
    if as_json:
        print_standing(settings)
    else:
        click.echo(f"noted: the {side} side is open{nobody_leads(settings)}")
    return 0
