"""Finds up to where the log has changes of former tables (see ``identity``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.events.payload import payload_events
from migrator.adapters.sources.binlog.place.track import Track
from migrator.adapters.sources.binlog.statements.statement_reader import StatementReader
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind
from migrator.adapters.sources.binlog.tables import compressed
from migrator.adapters.sources.binlog.tables.captured_tables import CapturedTables
from migrator.adapters.sources.binlog.tables.identity import FormerTables, replaced_by
from migrator.adapters.sources.binlog.tables.noted import note_former, noted_former
from migrator.model.table import TableId
from migrator.ports.log_notes import LogNotes


def pass_former(
    notes: LogNotes, tables: CapturedTables, end: int, last: Callable[[], Mapping[TableId, int]]
) -> None:
    """Has ``tables`` pass what the log up to ``end`` has of former tables, and statements about those whose rows all
    come again; notes it.

    ``last``: asks for ``last_replaced``, where any table's rows do.
    """
    answered = [t for t in tables.names() if notes.answered(t)]
    tables.answered = dict.fromkeys(answered, end)
    all_again = answered + [t for t in tables.names() if notes.consented(t) and t not in answered]
    found = last() if all_again else {}
    for table in all_again:
        if table in found:
            note_former(notes, table, found[table])
        notes.settle(table)
    tables.former = FormerTables(noted_former(notes, tables.names()))
    tables.answered |= dict.fromkeys(notes.replaced(), end)


def last_replaced(
    log: Iterator[Event],
    track: Track,
    statements: StatementReader,
    tables: CapturedTables,
    end: int,
    answered: Callable[[TableId], bool],
) -> dict[TableId, int]:
    """The order of the last statement that gave a captured name to another table, for each that there is.

    An ALTER counts as one where rows before it have needed columns under other types, and all rows of the table come
    again anyway.

    Args:
        log: from where reading goes on.
        track: stands there.
        statements: reads them.
        tables: the captured tables.
        end: the order of the log's end when all rows were asked for: what comes later isn't answered by that.
        answered: tells whether somebody has asked for all rows of a table.
    """
    last: dict[TableId, int] = {}
    captured = tables.names()
    altered: dict[TableId, int] = {}
    unreadable: set[TableId] = set()
    for event, statement, here in log_ahead(log, track, statements, tables, end):
        if statement is not None:
            last |= dict.fromkeys(replaced_by(statement, captured), here)
            if statement.kind is StatementKind.ALTERED:
                altered |= dict.fromkeys(statement.tables, here)
        elif event.type == events.TABLE_MAP:
            unreadable |= {table for table in [tables.outdated(event.body)] if table is not None}
    for table in unreadable & altered.keys() & ({t for t in captured if answered(t)} | last.keys()):
        last[table] = max(altered[table], last.get(table, 0))
    return last


def log_ahead(
    log: Iterator[Event], track: Track, statements: StatementReader, tables: CapturedTables, end: int
) -> Iterator[tuple[Event, Statement | None, int]]:
    """Yields the events within transactions behind the track, up to ``end``: each with the statement that it is, if
    it is one, and the order of a transaction that would end there. See ``last_replaced``."""
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
            _, statement = statements.read(event, tables.captured)
            yield event, statement, track.ending(event.end).order
        elif opened:
            yield event, None, track.ending(event.end).order
        behind = event.end
        if opened and _ends(event, begun) and track.ending(behind).order >= end:
            break  # the rest may be long in coming: an idle server sends nothing but heartbeats


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
