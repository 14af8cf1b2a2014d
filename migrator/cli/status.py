"""``migrator status``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from migrator.cli.dump import plain, request_lines
from migrator.cli.options import chosen, config_option, reverse_option
from migrator.cli.rows.rows import counted
from migrator.cli.run.verifier import coverage_lines
from migrator.config import project as configuration
from migrator.model.progress import Checkpoint, Phase, Remap, TableDump
from migrator.model.remaps.remap import awaited_requests, whole
from migrator.wiring import parts as wiring
from verify.tables.coverage import read_coverage


@click.command()
@config_option
@reverse_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def status(config: Path, reverse: bool, as_json: bool) -> None:
    """Shows what is dumped, captured and applied, from the event log and the ledger; works while a run goes on."""
    settings = chosen(configuration.load(config), reverse=reverse)
    found = wiring.status(settings)
    if as_json:
        covered = read_coverage(settings.reports())
        document = asdict(found) | {"verified": None if covered is None else asdict(covered)}
        click.echo(json.dumps(document, default=plain, indent=2))
        return
    ledger = found.ledger
    click.echo(f"migration  {settings.name}")
    click.echo(f"source     {settings.source.url()}")
    click.echo(f"target     {settings.target.url()}")
    click.echo(f"leader     {found.leader or 'none'}")
    for standby in found.standbys:
        click.echo(f"standby    {standby}")
    if found.hint is not None and found.hint.note:
        click.echo(f"note       {found.hint.note} (told {age(found.hint.at_us, time.time())})")
    for warning in found.warnings:
        click.echo(f"warning    {warning}")
    if ledger is None or ledger.checkpoint is None:
        click.echo("applied    nothing yet")
    else:
        click.echo(
            f"applied    segment {ledger.segment}, epoch {ledger.epoch}, at {ledger.checkpoint.position.token}"
        )
    click.echo(
        f"event log  {found.segments_waiting} segment(s) to apply, {found.event_log_bytes / 2**20:,.1f} MiB"
    )
    for output, segment in found.outputs:
        click.echo(f"output     {output}: up to segment {segment}")
    changed = dict(found.last_changes)
    for dump in found.dumps:
        state = "done" if dump.done else f"{dump.rows + dump.dropped_rows:,} of about {dump.estimated_rows:,}"
        click.echo(
            f"dump       {dump.table.name}: {state} ({dump.rows:,} rows, {dump.dropped_rows:,} dropped)"
            f"; {last_change(changed.get(dump.table), time.time())}"
        )
    for name, segment in found.filled:
        click.echo(f"joined     {name}: filled from the mirror at segment {segment}, in step since")
    for one in () if ledger is None or ledger.checkpoint is None else ledger.checkpoint.filling:
        click.echo(
            f"joined     {one.target}: being filled, {one.rows:,} of about {one.of_rows:,} rows of its grains'"
            f" tables are covered, in {one.pieces} pieces"
        )
    for line in [] if ledger is None else remap_lines(ledger.checkpoint, found.requests):
        click.echo(f"remap      {line}")
    if ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.bad_rows:
        click.echo(f"bad rows   {counted(ledger.checkpoint.bad_rows)} (`migrator rows set-aside`)")
    covered = read_coverage(settings.reports())
    for line in coverage_lines(covered, lambda at_us: age(at_us, time.time())) if covered is not None else ():
        click.echo(f"verified   {line}")
    if found.book.requests:
        for line in request_lines(found.book, found.requests):
            click.echo(f"requests   {line}")


def remap_lines(checkpoint: Checkpoint | None, requests: Sequence[TableDump]) -> list[str]:
    """Tells how far each next mapping of a row-wise target is; ``requests``: progress of the open dump requests."""
    return [] if checkpoint is None else [_remap(checkpoint, one, requests) for one in checkpoint.remaps]


def _remap(checkpoint: Checkpoint, remap: Remap, requests: Sequence[TableDump]) -> str:
    name = remap.target
    if remap.phase is Phase.IN_FORCE:
        return f"{name}: its next function is in force"
    if remap.phase is Phase.SWITCHED:
        return f"{name}: its next function is in force; {remap.beside} is dropped with the next start"
    if remap.phase is Phase.ABORTED:
        return f"{name}: given up; {remap.beside} is dropped with the next start"
    if all(one.target != remap.beside for one in checkpoint.mapped or ()):
        return f"{name}: asked for; the next start begins to fill {remap.beside}"
    if whole(checkpoint, remap):
        return f"{name}: {remap.beside} is filled; its rows are about to be merged into {name}"
    own = awaited_requests(checkpoint, remap.beside)
    dumps = [one for one in requests if one.request in own]
    rows, of = sum(one.rows for one in dumps), sum(one.estimated_rows for one in dumps)
    return f"{name}: {remap.beside} is being filled: {rows:,} of about {of:,} source rows are read"


def last_change(at_us: int | None, now_s: float) -> str:
    """Tells when the log had the newest change of a table, so that one that fell silent is noticed."""
    if at_us is None:
        return "no change seen yet"
    at = datetime.fromtimestamp(at_us / 1e6, UTC)
    return f"last change {at:%Y-%m-%d %H:%M:%S} UTC, {age(at_us, now_s)}"


def age(at_us: int, now_s: float) -> str:
    """Tells how long ago a moment was; clocks of two machines may differ."""
    return f"{max(0.0, now_s - at_us / 1e6):,.0f} s ago"
