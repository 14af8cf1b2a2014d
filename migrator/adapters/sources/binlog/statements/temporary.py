"""Temporary tables of sessions, as far as the log tells: one may have the name of a captured table.

What a session does to such a table is logged where its format isn't ROW, word by word as if the captured one were
meant. The event's flag alone doesn't tell them apart: within a routine every statement after one on a temporary
table has it, and so has an ALTER whose defaults ask for the session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from migrator.adapters.sources.binlog.events.events import Event, of_its_thread
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.sql_words import Unreadable
from migrator.adapters.sources.binlog.statements.statements import (
    IsCaptured,
    Statement,
    StatementKind,
    Words,
    new_name,
    renamed_tables,
    starts_alter,
    table_list,
    words_of,
)
from migrator.model.table import TableId

_CREATED_AT = slice(52, 56)
"""The place in a format description of the second at which the server was started; zeros in later files."""


class Session(NamedTuple):
    """A session by the server that it was on, and its number there."""

    server: int
    thread: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The session that began when reading did, and the second of its server's clock.

    Sessions of its server with a greater number began later: all of their tables are known. Before that second a
    number may be of a time before the server was started.
    """

    own: Session
    at_s: int

    def before(self, session: Session, event: Event) -> bool:
        """Tells whether the session of an event began later."""
        later = event.timestamp_s >= self.at_s and session.thread > self.own.thread
        return later and session.server == self.own.server


class TemporaryTables:
    """The temporary tables that sessions have.

    Args:
        since: when reading began; None where no session's tables are known for sure.
    """

    def __init__(self, since: Begun | None = None):
        self._since = since
        self._open: dict[Session, set[TableId]] = {}
        self._unsure: set[Session] = set()

    def file(self, event: Event) -> None:
        """The format description of a file. A server that was started anew has none, and numbers sessions anew."""
        if any(event.body[_CREATED_AT]):
            self._open.clear()

    def judged(self, event: Event, query: QueryText, statement: Statement, captured: IsCaptured) -> Statement:
        """A statement by the temporary tables that its session has: nothing concerns us that is about one of them.

        A TRUNCATE that may be about one, for all that is known, may or may not have emptied the captured table.
        """
        session = Session(event.server, int.from_bytes(event.body[:4], "little"))

        def named(table: TableId | None) -> TableId | None:
            return table if table is None else captured(table) or table

        try:
            about = self._follow(session, Words(words_of(query), query.database), of_its_thread(event), named)
        except Unreadable:  # it may have been about any of them
            self._unsure.add(session)
            about = False
        if about:
            return Statement(StatementKind.OTHER)
        doubtful = statement.kind is StatementKind.TRUNCATED and of_its_thread(event)
        if not doubtful or not statement.tables or self._knows(session, event):
            return statement
        names = ", ".join(map(str, statement.tables))
        refused = f"TRUNCATE of {names}, or of a temporary table that has this name in its session"
        return replace(statement, kind=StatementKind.EMPTIED, refused=refused)

    def _knows(self, session: Session, event: Event) -> bool:
        since = self._since
        return since is not None and since.before(session, event) and session not in self._unsure

    def _follow(
        self,
        session: Session,
        cursor: Words,
        depends: bool,
        named: Callable[[TableId | None], TableId | None],
    ) -> bool:
        """Keeps in mind what a statement does to its session's temporary tables; tells whether it is about one.

        ``depends``: whether the event says that it depends on its session, as every one about such a table does.
        """
        has = self._open.get(session, set())
        if cursor.skip("SET STATEMENT"):
            while cursor.at < len(cursor.words) and not cursor.skip("FOR"):
                cursor.at += 1
        if cursor.skip("CREATE TEMPORARY TABLE", "CREATE OR REPLACE TEMPORARY TABLE"):
            cursor.skip("IF NOT EXISTS")
            table = named(cursor.table())
            self._open.setdefault(session, set()).update({table} if table is not None else ())
        elif cursor.skip("DROP TEMPORARY TABLE", "DROP TEMPORARY TABLES"):
            cursor.skip("IF EXISTS")
            has -= {named(table) for table in table_list(cursor)}
            if not has:
                self._open.pop(session, None)
        elif cursor.skip("RENAME TABLE", "RENAME TABLES"):
            cursor.skip("IF EXISTS")
            gone = has & {named(table) for table in renamed_tables(cursor)}
            if gone:  # MariaDB renames the temporary one, MySQL the other
                has -= gone
                self._unsure.add(session)
        elif depends:
            return self._changed(has, cursor, named)
        return False

    @staticmethod
    def _changed(has: set[TableId], cursor: Words, named: Callable[[TableId | None], TableId | None]) -> bool:
        """Tells whether one of these tables is emptied or altered; follows another name."""
        if cursor.skip("TRUNCATE"):
            cursor.skip("TABLE")
            return named(cursor.table()) in has
        if cursor.skip("DROP INDEX"):
            cursor.skip("IF EXISTS")
            cursor.identifier()
            cursor.skip("ON")
            return named(cursor.table()) in has
        if not starts_alter(cursor):
            return False
        table = named(cursor.table())
        if table is None or table not in has:
            return False
        other = named(new_name(cursor))
        if other is not None:
            has.discard(table)
            has.add(other)
        return True
