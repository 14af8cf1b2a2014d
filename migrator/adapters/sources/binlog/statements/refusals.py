"""The errors that stop the log reader, by name. The assembler adds the place in the log."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind
from migrator.adapters.sources.replaced import all_rows_read
from migrator.errors import GapError, MigratorError, ReplacedError, SchemaError, SourceError
from migrator.model.table import TableId


def broken(
    what: str, cause: str, remedy: str = "start the migration anew (docs/how-to/start-anew.md)"
) -> SourceError:
    """The log isn't what it should be."""
    return SourceError(what, cause=cause, remedy=remedy)


def undecodable(event: Event, error: Exception) -> SourceError:
    """An event whose bytes aren't what they should be."""
    return broken(
        f"an event of type {event.type} can't be decoded",
        f"{type(error).__name__}: {error}",
        "correct the value in the source, or leave the table out of the migration",
    )


def unknown_event(event: Event) -> MigratorError:
    """An event that may hold rows and isn't known."""
    if event.type == events.INCIDENT:
        return GapError(
            "the server reports that its log lacks events",
            cause="INCIDENT event: a write to the binlog failed",
            remedy="start the migration anew (docs/how-to/start-anew.md)",
        )
    name = events.REFUSED_NAMES.get(event.type, f"type {event.type}")
    return broken(
        "the log holds an event that can't be decoded",
        f"event {name}",
        "turn the option off that it comes from, reconnect the writers, then "
        "start the migration anew (docs/how-to/start-anew.md)",
    )


def refused_statement(statement: Statement, replaced: Sequence[TableId], text: str) -> SourceError:
    """A statement that may have changed captured rows unseen, or after which names lead to other tables."""
    if replaced:
        return _replaced(replaced, statement, text)
    error = SchemaError if statement.kind is StatementKind.ALTERED else SourceError
    return error(
        f"the source ran a statement that can't be carried on: {statement.refused}",
        where=", ".join(map(str, statement.tables)),
        cause=f"statement: {' '.join(text.split())[:300]}",
        remedy="undo the change, or adapt the mapping and start again (docs/how-to/schema-changes.md says where rows"
        " have to be read once more); if that stops here again, start the migration anew (docs/how-to/start-anew.md)"
        if statement.columns
        else "start the migration anew (docs/how-to/start-anew.md) (the target keeps its last consistent"
        " state until then)",
    )


def _replaced(tables: Sequence[TableId], statement: Statement, text: str) -> ReplacedError:
    return ReplacedError(
        f"{', '.join(map(str, tables))} may be another table, or have other rows, now: {statement.refused}",
        tables,
        cause=f"statement: {' '.join(text.split())[:300]}",
        remedy="let the name lead to the table that is meant (RENAME TABLE where it is called otherwise now), and"
        f" {all_rows_read(tables)}",
    )


def changed_while_prepared(table: TableId) -> SchemaError:
    """The rows of an XA transaction are older than the table's columns."""
    return SchemaError(
        "a captured table was changed while an XA transaction on it was prepared",
        where=str(table),
        cause="the rows of the transaction have the table's earlier columns",
        remedy="start the migration anew (docs/how-to/start-anew.md)",
    )


def prepared_before(xid: str) -> SourceError:
    """An XA COMMIT of rows that nobody has."""
    return broken(
        "an XA transaction was committed that was prepared before reading began",
        f"XA COMMIT {xid}",
        "its rows are not known: start the migration anew (docs/how-to/start-anew.md)",
    )


def undecided_at_start(where: str, xids: Collection[str]) -> SourceError:
    """XA transactions whose rows were logged before a first start, and whose outcome is open."""
    shown = "; ".join(sorted(xids)[:5])
    return SourceError(
        "XA transactions are prepared and not decided: their rows would be missing from log and dump",
        where=where,
        cause=f"XA RECOVER lists {len(xids)}: {shown}",
        remedy="wait, or decide them: XA COMMIT or XA ROLLBACK with that id; the migration begins by itself then",
        retryable=True,
    )
