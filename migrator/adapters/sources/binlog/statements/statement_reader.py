"""Reads and judges the statements of one log, and keeps in mind by what those of other databases may reach ours."""

from __future__ import annotations

from typing import Any

from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.statements.query_event import QueryEvents, QueryText
from migrator.adapters.sources.binlog.statements.sql_words import Unreadable, unquoted
from migrator.adapters.sources.binlog.statements.statements import (
    IsCaptured,
    Statement,
    Words,
    judge,
    words_of,
)
from migrator.adapters.sources.binlog.statements.temporary import Begun, Session, TemporaryTables
from migrator.connections.mysql.sql import query as rows_of
from migrator.model.table import TableId

_KINDS = ("VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "PACKAGE", "EVENT")
_SEES_ALL = ("SELECT", "SHOW VIEW", "TRIGGER", "EVENT")
"""Global rights by which a login sees what is defined in every database."""
_SYSTEM = "('mysql', 'sys', 'information_schema', 'performance_schema')"
_DEFINED = (
    "SELECT CONCAT('view ', TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.VIEWS"
    f" WHERE TABLE_SCHEMA NOT IN {_SYSTEM} AND TABLE_SCHEMA <> %s AND LOCATE(%s, VIEW_DEFINITION) > 0",
    "SELECT CONCAT('trigger ', TRIGGER_SCHEMA, '.', TRIGGER_NAME) FROM information_schema.TRIGGERS"
    f" WHERE TRIGGER_SCHEMA NOT IN {_SYSTEM} AND TRIGGER_SCHEMA <> %s AND LOCATE(%s, ACTION_STATEMENT) > 0",
    "SELECT CONCAT('routine ', ROUTINE_SCHEMA, '.', ROUTINE_NAME) FROM information_schema.ROUTINES"
    f" WHERE ROUTINE_SCHEMA NOT IN {_SYSTEM} AND ROUTINE_SCHEMA <> %s"
    " AND (LOCATE(%s, ROUTINE_DEFINITION) > 0 OR LOCATE('PREPARE', UPPER(ROUTINE_DEFINITION)) > 0)",
    "SELECT CONCAT('foreign key ', CONSTRAINT_NAME) FROM information_schema.REFERENTIAL_CONSTRAINTS"
    " WHERE UNIQUE_CONSTRAINT_SCHEMA <> %s AND CONSTRAINT_SCHEMA = %s",
)
"""Queries for what other databases define that names ours, or that may run any text; the servers' own definitions
are harmless."""


def read_ways(connection: Any, database: str) -> str:
    """Returns by what a statement of another database may reach this one's rows, or that the login can't see it;
    empty for nothing."""
    rights = {
        str(right)
        for (right,) in rows_of(
            connection,
            "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES"
            " WHERE GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')",
        )
    }
    missing = [right for right in _SEES_ALL if right not in rights]
    if missing:
        return f"a view, trigger or routine (the login can't see any without {', '.join(missing)} ON *.*)"
    found = [str(name) for way in _DEFINED for (name,) in rows_of(connection, way, (database, database))]
    return ", ".join(found[:5])


def begun_now(connection: Any) -> Begun:
    """Returns that reading begins while a connection is there."""
    ((server, thread, at_s),) = rows_of(connection, "SELECT @@server_id, CONNECTION_ID(), UNIX_TIMESTAMP()")
    return Begun(Session(int(server), int(thread)), int(at_s))


class StatementReader:
    """Statements of one log.

    Args:
        database: the migrated one.
        queries: reads their text.
        logs_cascades: whether the server logs the rows that foreign keys cascade to.
        ways: by what a statement elsewhere may reach our rows, when reading begins (``read_ways``).
        begun: when reading began.
    """

    def __init__(
        self,
        database: str,
        queries: QueryEvents,
        logs_cascades: bool,
        ways: str = "",
        begun: Begun | None = None,
    ):
        self._database = database
        self._queries = queries
        self._logs_cascades = logs_cascades
        self._ways = ways
        self._temporary = TemporaryTables(begun)

    def file(self, event: Event) -> None:
        """The format description of a file."""
        self._queries.file(event)
        self._temporary.file(event)

    def read(self, event: Event, captured: IsCaptured) -> tuple[QueryText, Statement]:
        """A statement and what it means. ``captured``: which tables are."""
        query = self._queries.query(event)
        found = judge(query, self._database, captured, self._logs_cascades, self._ways)
        statement = self._temporary.judged(event, query, found, captured)
        if not statement.refused and not self._ways:
            self._follow(query, captured)
        return query, statement

    def _follow(self, query: QueryText, captured: IsCaptured) -> None:
        """A view, trigger or routine of another database that may name ours is a way to it from now on."""
        try:
            cursor = Words(words_of(query), query.database)
        except Unreadable:
            return
        if not cursor.skip("CREATE", "ALTER"):
            return
        kind = next((n for n, word in enumerate(cursor.words[1:15], 1) if word.upper() in _KINDS), None)
        if kind is None:
            return
        cursor.at = kind + 1
        cursor.skip("IF NOT EXISTS", "IF EXISTS")
        subject = cursor.table()
        if subject is None or captured(TableId(subject.schema, "")) is not None:
            return  # whoever uses it names our database
        names = {unquoted(word) for word in cursor.words}
        if any(captured(TableId(name, "")) is not None for name in (query.database, *names)):
            self._ways = f"what was defined by {' '.join(query.text.split())[:80]!r}"
