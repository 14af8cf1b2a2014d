"""The document of `migrator status --json` (docs/schemas/status.schema.json)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from migrator.cli.status.words import remap_lines
from migrator.config.project import Settings
from migrator.core.standing import WORDS, Standing
from migrator.model.position import Position
from migrator.model.progress import BadRow, Checkpoint, TableDump
from migrator.model.requests.request import DumpRequest
from migrator.wiring.observed.status import Status, unit_of
from verify.tables.coverage import Coverage

FORMAT = 1


def document(settings: Settings, found: Status, covered: Coverage | None, stands: Standing) -> dict[str, Any]:
    """All that is known, as JSON."""
    ledger, source, hint = found.ledger, found.source, found.hint
    checkpoint = None if ledger is None else ledger.checkpoint
    return {
        "format": FORMAT,
        "migration": settings.name,
        "source": settings.source.url(),
        "target": settings.target.url(),
        "standing": WORDS[stands],
        "exit_code": int(stands),
        "phase": found.phase,
        "leader": found.leader,
        "standbys": list(found.standbys),
        "epoch": 0 if ledger is None else ledger.epoch,
        "note": present.note if (present := found.present_hint()) is not None else "",
        "warnings": list(found.warnings),
        "ended": None if hint is None or hint.ended is None or found.leader else asdict(hint.ended),
        "source_end": _position(source.end),
        "source_problem": source.problem,
        "applied": _position(None if checkpoint is None else checkpoint.position),
        "applied_segment": 0 if ledger is None else ledger.segment,
        "complete": found.complete(),
        "lag": asdict(found.lag) | {"unit": unit_of(settings)},
        "log_room": None if source.retention is None else _room(asdict(source.retention)),
        "event_log": {"segments_to_apply": found.segments_waiting, "bytes": found.event_log_bytes},
        "outputs": [{"output": output, "segment": segment} for output, segment in found.outputs],
        "dumps": list(_dumps(found)),
        "joined": list(_joined(found, checkpoint)),
        "remaps": remap_lines(checkpoint, found.requests),
        "bad_rows": [_bad(one) for one in (() if checkpoint is None else checkpoint.bad_rows)],
        "requests": [_request(one, found.requests) for one in found.book.requests],
        "pace": asdict(found.book.pace),
        "verified": None
        if covered is None
        else asdict(covered) | {"tables": [asdict(t) for t in covered.tables]},
    }


def _position(position: Position | None) -> dict[str, Any] | None:
    return None if position is None else {"order": position.order, "token": position.token}


def _room(retention: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in retention.items() if name != "end"}


def _dumps(found: Status) -> Iterator[dict[str, Any]]:
    changed = dict(found.last_changes)
    for dump in found.dumps:
        yield _dump(dump) | {"last_change_us": changed.get(dump.table)}


def _dump(dump: TableDump) -> dict[str, Any]:
    return {
        "table": str(dump.table),
        "done": dump.done,
        "rows": dump.rows,
        "dropped_rows": dump.dropped_rows,
        "chunks": dump.chunks,
        "estimated_rows": dump.estimated_rows,
    }


def _joined(found: Status, checkpoint: Checkpoint | None) -> Iterator[dict[str, Any]]:
    for target, segment in found.filled:
        yield {"target": target, "filled_at_segment": segment, "rows": None, "of_rows": None}
    for one in () if checkpoint is None else checkpoint.filling:
        yield {"target": one.target, "filled_at_segment": None, "rows": one.rows, "of_rows": one.of_rows}


def _bad(row: BadRow) -> dict[str, Any]:
    return {"target": row.target, "key": row.key_text(), "reason": row.reason, "dropped": row.dropped}


def _request(request: DumpRequest, progress: tuple[TableDump, ...]) -> dict[str, Any]:
    own = [dump for dump in progress if dump.request == request.name()]
    return {
        "id": request.id,
        "state": request.state.value,
        "tables": [str(table) for table in request.tables],
        "scope": request.scope.text(),
        "reason": request.reason,
        "progress": [_dump(dump) for dump in own],
    }
