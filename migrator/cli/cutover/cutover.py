"""``migrator cutover plan | reads | start | status | abort | back | finish | opened``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from migrator.cli.cutover.accepted import accepted as _known
from migrator.cli.cutover.followed import looks
from migrator.cli.cutover.plan import plan
from migrator.cli.cutover.reads import reads
from migrator.cli.cutover.standing import line as line_of
from migrator.cli.cutover.standing import nobody_leads, print_standing, status
from migrator.cli.kept import keep, reason_option
from migrator.cli.options import SECONDS, config_option, json_option
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.core import cutover as rules
from migrator.model.cutover.record import Phase, Record, Side, Wanted
from migrator.ports.cutover import CutoverBook
from migrator.run.cutover.patient import PatientBook
from migrator.wiring import cutover as wiring


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


cutover.add_command(plan)
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
