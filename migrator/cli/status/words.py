"""The lines of `migrator status`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from migrator.cli.dump import request_lines
from migrator.cli.rows.rows import counted
from migrator.cli.run.verifier import coverage_lines
from migrator.config.project import Settings
from migrator.core.standing import WORDS, Standing
from migrator.model.observed.observation import Lag
from migrator.model.observed.printable import printable
from migrator.model.progress import Checkpoint, Phase, Remap, TableDump
from migrator.model.remaps.remap import awaited_requests, whole
from migrator.model.retention import Retention
from migrator.wiring.observed.status import Status, unit_of
from verify.tables.coverage import Coverage

_NAMED = 3
UNITS = {"bytes": "bytes of log", "transactions": "transactions"}


def lines(
    settings: Settings, found: Status, covered: Coverage | None, stands: Standing, now_s: float
) -> Iterator[str]:
    """Shows all that is known, the verdict first. ``now_s``: by this machine's clock, seconds since 1970."""
    yield f"migration  {settings.name}"
    yield f"standing   {WORDS[stands]}{_because(found, covered, stands)}"
    yield f"phase      {found.phase}"
    yield f"source     {settings.source.url()}"
    yield f"target     {settings.target.url()}"
    yield from _who(found, now_s)
    yield from (f"warning    {warning}" for warning in found.warnings)
    yield f"log ends   {found.source.end.token if found.source.end else f'unknown: {found.source.problem}'}"
    ledger = found.ledger
    if ledger is None or ledger.checkpoint is None:
        yield "applied    nothing yet"
    else:
        yield f"applied    segment {ledger.segment}, epoch {ledger.epoch}, at {ledger.checkpoint.position.token}"
    yield f"lag        {lag_in_words(found.lag, unit_of(settings))}"
    if found.source.retention is not None and (kept := room_in_words(found.source.retention)):
        yield f"log room   {kept}"
    yield f"event log  {found.segments_waiting} segment(s) to apply, {found.event_log_bytes / 2**20:,.1f} MiB"
    yield from (f"output     {output}: up to segment {segment}" for output, segment in found.outputs)
    yield from _dumps([one for one in found.dumps if not one.done], found, now_s)
    yield from _targets(found)
    if found.book.requests:
        for line in request_lines(found.book, found.requests):
            yield f"requests   {line}"
    for line in coverage_lines(covered, lambda at_us: age(at_us, now_s)) if covered is not None else ():
        yield f"verified   {line}"
    yield from _dumps([one for one in found.dumps if one.done], found, now_s)


def _because(found: Status, covered: Coverage | None, stands: Standing) -> str:
    if stands is Standing.DIFFERENT and covered is not None:
        wrong = [one.table for one in covered.tables if one.verdict == "different"]
        more = f" and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
        return f": rows of {', '.join(wrong[:_NAMED])}{more} differ, by the last verification"
    if stands is Standing.STOPPED:
        behind = found.lag.behind
        return "" if behind == 0 else ": nobody applies what is behind" if behind else ": nobody leads"
    if stands is Standing.UNKNOWN:
        return f": {found.lag.unknown}"
    return ": not everything is dumped yet" if stands is Standing.BEHIND and not found.complete() else ""


def _who(found: Status, now_s: float) -> Iterator[str]:
    yield f"leader     {found.leader or 'none'}"
    yield from (f"standby    {standby}" for standby in found.standbys)
    hint = found.hint
    if (present := found.present_hint()) is not None and present.note:
        yield f"note       {present.note} (told {age(present.at_us, now_s)})"
    if hint is not None and not found.leader and hint.ended is not None:
        yield f"ended      {age(hint.ended.at_us, now_s)}: {hint.ended.words or 'it was told to, or had caught up'}"


def _dumps(dumps: Sequence[TableDump], found: Status, now_s: float) -> Iterator[str]:
    changed = dict(found.last_changes)
    for dump in dumps:
        state = "done" if dump.done else f"{dump.rows + dump.dropped_rows:,} of about {dump.estimated_rows:,}"
        yield (
            f"dump       {printable(dump.table.name)}: {state} ({dump.rows:,} rows, {dump.dropped_rows:,} dropped)"
            f"; {last_change(changed.get(dump.table), now_s)}"
        )


def _targets(found: Status) -> Iterator[str]:
    for name, segment in found.filled:
        yield f"joined     {name}: filled from the mirror at segment {segment}, in step since"
    checkpoint = None if found.ledger is None else found.ledger.checkpoint
    for one in () if checkpoint is None else checkpoint.filling:
        yield (
            f"joined     {one.target}: being filled, {one.rows:,} of about {one.of_rows:,} rows of its grains'"
            f" tables are covered, in {one.pieces} pieces"
        )
    yield from (f"remap      {line}" for line in remap_lines(checkpoint, found.requests))
    if checkpoint is not None and checkpoint.bad_rows:
        yield f"bad rows   {counted(checkpoint.bad_rows)} (`migrator rows set-aside`)"


def lag_in_words(lag: Lag, unit: str) -> str:
    """The lag as distance and age, and *unknown* where nobody can know it."""
    at_most = "" if lag.at_most_s is None else f"; all of before {lag.at_most_s:,.0f} s ago is applied"
    if lag.behind is None:
        return f"unknown ({lag.unknown}){at_most}"
    if lag.behind == 0:
        return "none: all that the source has committed is applied"
    age_s = f"at most {lag.age_s:,.0f} s old" if lag.age_s is not None else f"of unknown age ({lag.unknown})"
    return f"{lag.behind:,} {UNITS[unit]} behind, {age_s}"


def room_in_words(room: Retention) -> str:
    """The log that the source keeps, and how long; empty where it says nothing."""
    parts = []
    if room.kept_bytes is not None:
        parts.append(f"{room.kept_bytes / 2**20:,.1f} MiB are kept for this migration")
    if room.left_bytes is not None:
        parts.append(f"{max(0, room.left_bytes) / 2**20:,.1f} MiB more may be written")
    elif room.kept_bytes is not None and room.expiry_s is None:
        parts.append("without a bound")
    if room.expiry_s is not None:
        parts.append(f"kept for {room.expiry_s / 3600:,.1f} h, needed or not")
    return "; ".join([*([room.endangered] if room.endangered else []), *parts])


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
