"""The documents that the live page is fed with (docs/schemas/live.schema.json, hour.schema.json)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from migrator import __version__
from migrator.model.cutover.record import SWITCH, Phase, Record
from migrator.model.observed.hour import LOOK_EVERY_US, OPERATIONS, Hour
from migrator.model.observed.live import Live
from migrator.model.observed.observation import Observation, Server, VerifiedTable
from migrator.model.observed.trouble import Trouble
from migrator.model.position import Position
from migrator.model.progress import TableDump
from migrator.model.requests.request import DumpRequest, Pace, RequestBook

FORMAT = 1
NOT_VERIFIED = "not verified"
_ROOM = ("kept_bytes", "left_bytes", "bound_bytes", "expiry_s")


def live_document(live: Live, control: bool) -> dict[str, Any]:
    """Everything known now. ``control``: whether anything can be asked for at this address."""
    seen, hour = live.seen, live.hour
    return {
        "format": FORMAT,
        "migration": seen.migration,
        "version": __version__,
        "at_us": seen.at_us,
        "started_us": seen.started_us,
        "role": seen.role,
        "phase": seen.phase,
        "note": seen.note,
        "epoch": seen.epoch,
        "leader": seen.leader,
        "standbys": seen.standbys,
        "verdict": _trouble(live.verdict),
        "troubles": [_trouble(one) for one in live.troubles],
        "lag": asdict(seen.lag) | {"unit": seen.unit},
        "capture_lag": asdict(seen.capture_lag) | {"unit": seen.unit},
        "source": _server(seen.source, seen.end) | _room(seen),
        "event_log": {
            "captured": _position(seen.captured),
            "segments": seen.room.segments,
            "bytes": seen.room.event_log_bytes,
            "disk_free_bytes": seen.room.disk_free_bytes,
        },
        "target": _server(seen.target, seen.applied),
        "rates": {
            "captured_per_s": hour.rate(lambda look: look.captured),
            "applied_per_s": hour.rate(lambda look: look.applied),
            "dumped_per_s": hour.rate(lambda look: look.dumped),
            "batches_per_s": hour.rate(lambda look: look.batches),
        },
        "dumps": [_dump(one) for one in seen.dumps],
        "filling": [{"target": one.target, "rows": one.rows, "of_rows": one.of_rows} for one in seen.filling],
        "verified": list(_verified(live.targets, seen.judged.verified)),
        "verify_problem": seen.judged.problem,
        "dual_reads": [{"verdict": name, "number": number} for name, number in seen.judged.reads],
        "warnings": list(_warnings(seen)),
        "errors": [{"error": names[0], "number": int(number)} for names, number in seen.work.errors],
        "memory": [{"process": name, "bytes": size} for name, size in seen.memory],
        "cutover": None if live.cutover is None else _cutover(live.cutover),
        "requests": None if live.book is None else _requests(live.book, live.requests),
        "pace": None if live.book is None else _pace(live.book.pace),
        "control": control,
    }


def hour_document(seen: Observation, hour: Hour) -> dict[str, Any]:
    """The hour before: a value for each look, and for each minute and table that changed in it."""
    changed: dict[str, dict[str, list[int]]] = {}
    for place, minute in enumerate(hour.minutes):
        for (table, operation, *_), number in minute.counts:
            row = changed.setdefault(table, {name: [0] * len(hour.minutes) for name in OPERATIONS})
            row.setdefault(operation, [0] * len(hour.minutes))[place] = int(number)
    return {
        "format": FORMAT,
        "at_us": seen.at_us,
        "every_us": LOOK_EVERY_US,
        "looks": {
            "at_us": [look.at_us for look in hour.looks],
            "captured_per_s": list(_rounded(hour.rates(lambda look: look.captured))),
            "applied_per_s": list(_rounded(hour.rates(lambda look: look.applied))),
            "dumped_per_s": list(_rounded(hour.rates(lambda look: look.dumped))),
            "lag_s": list(_rounded(look.lag_s for look in hour.looks)),
            "capture_lag_s": list(_rounded(look.capture_lag_s for look in hour.looks)),
            "segments": [look.segments for look in hour.looks],
        },
        "minutes": {
            "start_us": [minute.start_us for minute in hour.minutes],
            "read": [minute.read for minute in hour.minutes],
        },
        "tables": [
            {"table": table, **{name: row[name] for name in OPERATIONS}}
            for table, row in sorted(changed.items())
        ],
        "fallen": [
            {
                "table": one.table,
                "since_us": one.since_us,
                "usual_per_minute": one.usual,
                "now_per_minute": one.now,
            }
            for one in hour.fallen
        ],
    }


DOCUMENTS: Mapping[str, str] = {
    "cut-over": "cut-over",
    "damage": "start-anew",
    "dump requests": "dump-again",
    "dump requests: pace": "pace",
    "event log": "watch",
    "halt": "stop-and-restart",
    "late writes": "cut-over",
    "mapping": "change-the-mapping",
    "mirror": "joined-mappings",
    "reading": "watch",
    "remap": "change-the-mapping",
    "replaced": "schema-changes",
    "silent tables": "watch",
    "source log": "watch",
    "upkeep": "watch",
    "verification": "verify",
}
"""The document, of `migrator docs`, that says more of what a run warns of."""


def document_of(about: str) -> str:
    """The document, of `migrator docs`, that says more of what a run warns of."""
    return DOCUMENTS.get(about, "watch")


def _trouble(one: Trouble) -> dict[str, Any]:
    return asdict(one) | {"tables": list(one.tables)}


def _server(server: Server, position: Position | None) -> dict[str, Any]:
    return {
        "answer_s": server.answer_s,
        "problem": server.problem,
        "since_us": server.since_us or None,
        "position": _position(position),
    }


def _room(seen: Observation) -> dict[str, Any]:
    return {name: None if seen.retention is None else getattr(seen.retention, name) for name in _ROOM}


def _position(position: Position | None) -> dict[str, Any] | None:
    return None if position is None else {"order": str(position.order), "token": position.token}


def _warnings(seen: Observation) -> Iterator[dict[str, Any]]:
    since = dict(seen.warned_us)
    for about, text in seen.warnings:
        yield {"about": about, "text": text, "since_us": since.get(about), "document": document_of(about)}


def _dump(dump: TableDump) -> dict[str, Any]:
    return {
        "table": str(dump.table),
        "name": dump.table.name,
        "done": dump.done,
        "rows": dump.rows + dump.dropped_rows,
        "estimated_rows": dump.estimated_rows,
        "chunks": dump.chunks,
    }


def _verified(targets: Iterable[str], verified: Iterable[VerifiedTable]) -> Iterable[dict[str, Any]]:
    known = {one.table: one for one in verified}
    for name in dict.fromkeys((*targets, *known)):
        one = known.get(name)
        yield {
            "table": name,
            "verdict": (one.verdict if one is not None else "") or NOT_VERIFIED,
            "at_us": one.at_us or None if one is not None else None,
            "key_share": one.key_share if one is not None else 0.0,
            "column_share": one.column_share if one is not None else 0.0,
            "differing": one.differing if one is not None else 0,
        }


def _cutover(record: Record) -> dict[str, Any]:
    took = {one.phase: one.seconds for one in record.took}
    steps = []
    for step in SWITCH:
        state = "now" if step is record.phase else "done" if step in took else "to come"
        steps.append({"step": step.value, "state": state, "seconds": took.get(step)})
    return {
        "phase": record.phase.value,
        "open_side": record.open_side.value,
        "opens": record.opens.value,
        "reads": record.reads.value,
        "turn": record.turn,
        "wanted": record.wanted.value,
        "under_way": record.under_way,
        "since_us": int(record.since_s * 1e6)
        if record.under_way and record.phase is not Phase.UNDOING
        else None,
        "pause_s": record.plan.pause_s,
        "reason": record.reason,
        "steps": steps,
    }


def _requests(book: RequestBook, progress: Iterable[TableDump]) -> list[dict[str, Any]]:
    return [_request(one, [dump for dump in progress if dump.request == one.name()]) for one in book.requests]


def _request(request: DumpRequest, own: list[TableDump]) -> dict[str, Any]:
    return {
        "id": request.id,
        "state": request.state.value,
        "tables": [str(table) for table in request.tables],
        "scope": request.scope.text(),
        "reason": request.reason,
        "rows": sum(dump.rows + dump.dropped_rows for dump in own),
        "estimated_rows": sum(dump.estimated_rows for dump in own),
        "tables_done": sum(dump.done for dump in own),
    }


def _pace(pace: Pace) -> dict[str, Any]:
    return asdict(pace)


def _rounded(values: Iterable[float | None]) -> Iterable[float | None]:
    return (None if value is None else round(value, 2) for value in values)
