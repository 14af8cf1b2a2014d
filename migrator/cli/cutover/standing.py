"""``migrator cutover status``: which side is open, the step under way, both fences; for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from migrator.cli.cutover.reads import reads_line
from migrator.cli.options import config_option, json_option, print_document
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.errors import MigratorError
from migrator.model.codecs.cutover_codec import record_to_json
from migrator.model.cutover.fence import FencePlan, FenceState, LateWriters
from migrator.model.cutover.record import Record, Side, Wanted
from migrator.wiring import cutover as wiring
from migrator.wiring.coordination import processes

FORMAT = 1
_NOBODY = ", and nobody leads (start `migrator run`; its last words say why)"


@dataclass(frozen=True, slots=True)
class SideNow:
    """One side as its server shows it: the fence that the plan has for it, whether it is up, whom it refused."""

    side: Side
    fence: FencePlan
    state: FenceState
    late: LateWriters


@click.command()
@config_option
@json_option
def status(config: Path, as_json: bool) -> int:
    """Show which side is open, the step under way, and what is being waited for."""
    settings = configuration.load(config)
    if as_json:
        print_standing(settings)
        return 0
    record, sides = _standing(settings)
    click.echo("\n".join(lines(record, sides, nobody_leads(settings))))
    return 0


def print_standing(settings: Settings) -> None:
    """Prints the standing as a document: also what the commands that ask for a step end with."""
    record, sides = _standing(settings)
    print_document(document(settings.name, record, sides, leads(settings)))


def _standing(settings: Settings) -> tuple[Record | None, list[SideNow]]:
    with_book = wiring.book(settings)
    try:
        record = with_book.read()
    finally:
        with_book.close()
    return record, [] if record is None else _sides(settings, record)


def _sides(settings: Settings, record: Record) -> list[SideNow]:
    both = wiring.fences(settings)
    fences = [(side, record.plan.fence(side)) for side in Side]
    return [SideNow(side, fence, both[side].state(fence), both[side].late(fence)) for side, fence in fences]


def leads(settings: Settings) -> bool | None:
    """Tells whether a process leads; None: nobody can tell."""
    try:
        return bool(processes(settings)[0])
    except MigratorError:
        return None


def nobody_leads(settings: Settings) -> str:
    """Words for a run that isn't there to take the steps; empty where one leads, or nobody can tell."""
    return _NOBODY if leads(settings) is False else ""


def line(record: Record) -> str:
    """The record in one line."""
    steps = ", ".join(f"{one.phase} {one.seconds:g} s" for one in record.took)
    parts = [f"{record.open_side} side open" if not record.under_way else f"step {record.phase}"]
    parts += [f"wanted: {record.wanted}"] if record.wanted is not Wanted.NOTHING else []
    parts += [record.reason] if record.reason else []
    parts += [f"last switch: {steps}"] if steps else []
    return "; ".join(parts)


def lines(record: Record | None, sides: Sequence[SideNow], nobody: str) -> Iterator[str]:
    """The state for people; ``nobody``: words for a run that isn't there."""
    if record is None:
        yield "no plan of a cut-over was accepted"
        return
    yield f"{line(record)}{nobody}"
    yield reads_line(record)
    for one in sides:
        names = ", ".join(f"{login or 'unknown'} {count}" for login, count in one.late.by_login)
        refused = f"{one.late.count} late write(s) refused{f' ({names})' if names else ''}"
        yield f"{one.side}: fence {one.fence.kind} is {one.state.standing}; {refused}"


def document(
    migration: str, record: Record | None, sides: Sequence[SideNow], led: bool | None
) -> dict[str, Any]:
    """The document of `migrator cutover status --json` (docs/schemas/cutover.schema.json)."""
    return {
        "format": FORMAT,
        "migration": migration,
        "led": led,
        "record": None if record is None else record_to_json(record),
        "sides": [
            {
                "side": one.side.value,
                "fence": one.fence.kind.value,
                "standing": one.state.standing.value,
                "missing": list(one.state.missing),
                "late_writes": one.late.count,
                "counted": one.late.counted,
                "by_login": [{"login": login, "late_writes": count} for login, count in one.late.by_login],
            }
            for one in sides
        ],
    }
