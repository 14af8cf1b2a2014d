"""Finds up to where the log has changes of former tables (see ``identity``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.events.payload import payload_events
from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.statements.statement_reader import StatementReader
from migrator.adapters.sources.binlog.statements.statements import IsCaptured
from migrator.adapters.sources.binlog.tables import compressed
from migrator.adapters.sources.binlog.tables.identity import replaced_by
from migrator.model.table import TableId


def last_replaced(
    log: Iterator[Event],
    track: Track,
    statements: StatementReader,
    captured: Sequence[TableId],
    is_captured: IsCaptured,
    end: int,
) -> dict[TableId, int]:
    """The order of the last statement that gave a captured name to another table, for each that there is.

    Args:
        log: from where reading goes on.
        track: stands there.
        statements: reads them.
        captured: the captured tables, which ``is_captured`` finds.
        end: the order of the log's end when all rows were asked for: what comes later isn't answered by that.
    """
    last: dict[TableId, int] = {}
    behind, opened, begun = 0, False, False
    for event in _plain(log):
        if event.type in events.GTIDS:
            if opened:
                track.end(behind)
            if track.position().order >= end:
                break
            opening = track.begin(event)
            opened, begun = not opening.known, opening.begun
        elif event.type == events.FORMAT_DESCRIPTION:
            statements.file(event)
        elif event.type == events.ROTATE:
            track.in_file(events.parse_rotate(event)[0])
        elif opened and event.type == events.QUERY and events.is_begin(event):
            begun = True
        elif opened and event.type in (events.QUERY, events.EXECUTE_LOAD_QUERY):
            _, statement = statements.read(event, is_captured)
            last |= dict.fromkeys(replaced_by(statement, captured), track.ending(event.end).order)
        behind = event.end
        if opened and _ends(event, begun) and track.ending(behind).order >= end:
            break  # the rest may be long in coming: an idle server sends nothing but heartbeats
    return last


def _ends(event: Event, begun: bool) -> bool:
    """Returns whether the open transaction surely ends with an event; ``begun``: it has a commit of its own."""
    if event.type in (events.XID, events.XA_PREPARE):
        return True
    return event.type == events.QUERY and not begun and not events.is_begin(event)


def _plain(log: Iterator[Event]) -> Iterator[Event]:
    for event in log:
        if event.type == events.TRANSACTION_PAYLOAD:
            yield from _plain(payload_events(event))
        else:
            yield compressed.plain(event) if event.type == compressed.QUERY else event
