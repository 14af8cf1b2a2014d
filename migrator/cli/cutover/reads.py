"""``migrator cutover reads``: the gate of reads, and reads alone to either side."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from migrator.cli.cutover.accepted import accepted
from migrator.cli.cutover.followed import LOOK_S, looks
from migrator.cli.kept import keep, reason_option
from migrator.cli.options import SECONDS, config_option, json_option, print_document
from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.core import cutover as rules
from migrator.errors import CutoverError
from migrator.model.cutover.reads import ReadShape
from migrator.model.cutover.record import Record, Side
from migrator.ports.cutover import CutoverBook
from migrator.run.cutover.patient import PatientBook
from migrator.wiring import cutover as wiring
from migrator.wiring.gates.reads import ReadsGate, reads_gate

_TRIES = 20
"""The leader changes the record as well: an operator's word about reads must get in between."""
_HEADS = ("pair", "settled", "lag", "wrong", "unknown", "p50 ms", "p99 ms", "compared", "")


@click.command()
@config_option
@reason_option
@click.option(
    "--to",
    "side",
    type=click.Choice([side.value for side in Side]),
    default=None,
    help="Point reads there. To the old side it is never refused; to the new one, while the old one is open, only"
    " once the gate is met.",
)
@click.option(
    "--wait",
    "wait_s",
    default=60.0,
    show_default=True,
    type=SECONDS,
    help="Longest wait for the leader, in seconds; what was asked for stays asked for.",
)
@json_option
def reads(config: Path, reason: str, side: str | None, wait_s: float, as_json: bool) -> int:
    """Show the gate of reads by the kept results of dual reads, and where reads go; point them with --to.

    Writes stay where they are.
    """
    settings = replace(configuration.load(config), reason=reason)
    with_book = PatientBook(partial(wiring.book, settings))
    try:
        if side is None:
            found, record = reads_gate(settings), with_book.read()
            if as_json:
                print_document(document(settings.name, found, record))
                return 1 if found.why_not else 0
            print_gate(found)
            click.echo("no plan of a cut-over was accepted" if record is None else reads_line(record))
            return 1 if found.why_not else 0
        _ask(with_book, settings, Side(side))
        keep(settings, "reads", f"to the {side} side")
        code = _followed(with_book, Side(side), wait_s, as_json)
        if as_json:
            print_document(document(settings.name, reads_gate(settings), with_book.read()))
        return code
    finally:
        with_book.close()


def print_gate(found: ReadsGate) -> None:
    """Prints a table of all pairs of queries, and what the gate says."""
    limits = found.limits
    rows = [_row(shape, why) for shape, why in found.shapes]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    for row in [_HEADS, *rows] if rows else ():
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    asked = (
        f"{limits.comparisons:,} comparisons of each pair, none wrong or unknown,"
        f" p99 at most {limits.slower:g} times"
    )
    if found.why_not:
        click.echo(f"reads stay on the old side: {found.why_not}\nthe gate asks for {asked}")
    else:
        click.echo(f"the gate of reads is met: {asked}")


def _row(shape: ReadShape, why: tuple[str, ...]) -> tuple[str, ...]:
    at = datetime.fromtimestamp(shape.at_s, UTC).isoformat(" ", "seconds") if shape.at_s else "never"
    counts = (shape.settled, shape.lag, shape.wrong, shape.unknown)
    return (
        shape.name,
        *(f"{count:,}" for count in counts),
        f"{shape.old_p50_ms:.1f} -> {shape.new_p50_ms:.1f}",
        f"{shape.old_p99_ms:.1f} -> {shape.new_p99_ms:.1f}",
        at,
        "refuses" if why else "ok",
    )


def document(migration: str, found: ReadsGate, record: Record | None) -> dict[str, Any]:
    """The document of `migrator cutover reads --json` (docs/schemas/reads.schema.json)."""
    wanted = None if record is None else record.reads_wanted
    return {
        "format": 1,
        "migration": migration,
        **gate_fields(found),
        "reads": None if record is None else record.reads.value,
        "wanted": None if wanted is None else wanted.value,
        "said": "" if record is None else record.reads_said,
    }


def gate_fields(found: ReadsGate) -> dict[str, Any]:
    """The gate within a document."""
    return {
        "why_not": found.why_not,
        "limits": {"comparisons": found.limits.comparisons, "slower": found.limits.slower},
        "pairs": [asdict(shape) | {"refuses": list(why)} for shape, why in found.shapes],
    }


def reads_line(record: Record) -> str:
    """The side that reads go to, in one line."""
    parts = [f"reads go to the {record.reads} side"]
    parts += [f"wanted: {record.reads_wanted}"] if record.reads_wanted is not None else []
    parts += [record.reads_said] if record.reads_said else []
    return "; ".join(parts)


def _ask(with_book: CutoverBook, settings: Settings, side: Side) -> None:
    record = accepted(with_book)
    gate = ""
    if side is Side.NEW and record.open_side is Side.OLD:
        gate = reads_gate(settings).why_not
    for left in reversed(range(_TRIES)):
        try:
            with_book.ask(rules.asked_reads(record, side, gate))
            return
        except CutoverError as error:
            if not error.retryable or not left:
                raise
        time.sleep(LOOK_S / 4)
        record = accepted(with_book)


def _followed(with_book: CutoverBook, side: Side, wait_s: float, aside: bool) -> int:
    for record in looks(with_book, wait_s):
        if record.reads_wanted is None:
            click.echo(reads_line(record), err=aside)
            return 0 if record.reads is side and not record.reads_said else 1
    click.echo("the leader hasn't heard it yet: `migrator cutover status` says more", err=aside)
    return 3
