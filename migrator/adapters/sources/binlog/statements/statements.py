"""Statements in the binary log: which of them end a transaction, change captured tables, or write rows unseen.

A row-based log still holds statements: DDL, transaction control, and DML of sessions that switched to statement
format. They are judged by their words; whatever may touch a captured table and isn't known to be harmless is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from migrator.adapters.sources.binlog.statements.alter_clauses import (
    clauses_of,
    columns_of,
    may_change,
    moves_rows,
    renamed_by,
    why_refused,
)
from migrator.adapters.sources.binlog.statements.definitions import is_unknown
from migrator.adapters.sources.binlog.statements.query_event import QueryText, made_by_server
from migrator.adapters.sources.binlog.statements.sql_words import Unreadable, unquoted, words
from migrator.model.table import TableId

_WRITE_NO_ROWS = frozenset(
    (
        "CREATE",
        "ALTER",
        "DROP",
        "RENAME",
        "GRANT",
        "REVOKE",
        "SET",
        "FLUSH",
        "OPTIMIZE",
        "REPAIR",
        "CHECK",
        "INSTALL",
        "UNINSTALL",
        "KILL",
        "XA",
        "USE",
        "LOCK",
        "UNLOCK",
        "TRUNCATE",
    )
)
"""First words of statements that write no rows of an existing table; whatever begins otherwise might. A table that
is made from a query is the exception, see ``_fills``."""
_INDEX_GONE = re.compile(
    r"(?:DROP|RENAME) (?:INDEX|KEY|CONSTRAINT) (?:IF EXISTS )?(`(?:[^`]|``)*`|\S+)", re.IGNORECASE
)


class StatementKind(Enum):
    """The meaning of a statement for the log reader."""

    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    ROLLBACK_TO = "rollback to savepoint"
    XA_START = "xa start"
    XA_COMMIT = "xa commit"
    XA_ROLLBACK = "xa rollback"
    ROWS = "statement-format DML"
    TRUNCATED = "table emptied"
    EMPTIED = "table dropped or renamed, or rows with a partition"
    ALTERED = "table altered"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Statement:
    """A judged statement.

    Attributes:
        kind: what it means.
        name: savepoint name, or the XA id as written.
        tables: captured tables concerned.
        indexes: names of the indexes and constraints that are dropped or renamed.
        refused: why it can't be carried on, with the clause; empty when it can. A TRUNCATE can where it
            commits by itself.
        columns: names of the columns that it drops, redefines or renames, if nothing else stands in its way: where
            no mapping needs any of them, it can be carried on.
        renamed: old and new names of those among them that only get another name.
        redefined: names, old and new, of those that it drops or redefines.
    """

    kind: StatementKind
    name: str = ""
    tables: tuple[TableId, ...] = ()
    indexes: tuple[str, ...] = ()
    refused: str = ""
    columns: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    redefined: tuple[str, ...] = ()

    def only_renamed(self) -> list[tuple[str, str]]:
        """Returns those of ``renamed`` whose new name no other column had before the statement."""
        others = {name.lower() for name in (*self.redefined, *(old for old, _ in self.renamed))}
        return [(old, new) for old, new in self.renamed if new.lower() not in others - {old.lower()}]


IsCaptured = Callable[[TableId], TableId | None]
"""Gives the captured table of that name, spelt as the catalog spells it (lower_case_table_names), or None."""


class Words:
    """A cursor over the words of a statement."""

    def __init__(self, words: Sequence[str], database: str):
        self.words = words
        self.at = 0
        self.database = database

    def skip(self, *phrases: str) -> bool:
        """Steps over the first phrase that comes next."""
        for phrase in phrases:
            parts = phrase.split()
            if [word.upper() for word in self.words[self.at : self.at + len(parts)]] == parts:
                self.at += len(parts)
                return True
        return False

    def table(self) -> TableId | None:
        """The table name that comes next, with its database; ``.t`` is of the default one."""
        self.skip(".")
        first = self.identifier()
        if first is None:
            return None
        if self.skip("."):
            return TableId(first, self.identifier() or "")
        return TableId(self.database, first)

    def identifier(self) -> str | None:
        """The name that comes next."""
        if self.at >= len(self.words):
            return None
        word = self.words[self.at]
        self.at += 1
        return unquoted(word)


def words_of(query: QueryText) -> list[str]:
    """The words of a statement, comments taken out and executable comments opened. Raises ``Unreadable``."""
    return words(query.text, query.lexer)


def judge(
    query: QueryText, database: str, captured: IsCaptured, logs_cascades: bool = False, ways: str = ""
) -> Statement:
    """Returns what the statement means.

    Args:
        query: the statement.
        database: the migrated one.
        captured: which tables are captured.
        logs_cascades: whether the server logs the rows that foreign keys cascade to.
        ways: by what a statement of another database may reach this one's rows, unless the log says what it
            wrote to.
    """

    def in_reading(text: str) -> Statement:
        return _judge(replace(query, text=text), database, captured, logs_cascades, ways)

    try:
        found = in_reading(query.text)
        if not query.readable and any("\ufffd" in word for word in words_of(query) if word[0] not in "'\""):
            raise Unreadable("a name is no text of its client's character set")
        if query.other is None or _concerns(found):
            return found
        other = in_reading(query.other)
    except Unreadable as error:
        return _unreadable(query, str(error), database, captured)
    if not _concerns(other) or made_by_server(query):
        return other if made_by_server(query) else found
    return replace(
        other, refused="a statement whose names are others in UTF-8 than in its client's character set"
    )


def _concerns(statement: Statement) -> bool:
    return bool(statement.tables or statement.refused)


def _unreadable(query: QueryText, why: str, database: str, captured: IsCaptured) -> Statement:
    """A statement that was read otherwise than its server has read it: it may be about anything it could name."""
    named = database in query.text or not database.isascii()
    if named or captured(TableId(query.database, "")) is not None:
        return Statement(
            StatementKind.OTHER, refused=f"a statement that can't be read with certainty ({why})"
        )
    return Statement(StatementKind.OTHER)


def _judge(
    query: QueryText, database: str, captured: IsCaptured, logs_cascades: bool, ways: str
) -> Statement:
    words = words_of(query)
    cursor = Words(words, query.database)
    if not words:
        return Statement(StatementKind.OTHER)
    control = _transaction_control(cursor, words)
    if control is not None:
        return control
    if cursor.skip("SET STATEMENT"):
        while cursor.at < len(words) and not cursor.skip("FOR"):
            cursor.at += 1
    if not _writes_no_rows(cursor):
        return _rows(query, words[cursor.at :], database, captured, ways)
    return _defined(cursor, captured, logs_cascades)


def _defined(cursor: Words, captured: IsCaptured, logs_cascades: bool) -> Statement:
    """A statement that defines something, and writes no rows of an existing table."""
    if cursor.skip("DROP DATABASE", "DROP SCHEMA"):
        cursor.skip("IF EXISTS")
        name = cursor.identifier() or ""
        refused = "DROP DATABASE of the source database" if captured(TableId(name, "")) else ""
        return Statement(StatementKind.EMPTIED, refused=refused)
    if cursor.skip("TRUNCATE"):
        cursor.skip("TABLE")
        return replace(_emptied([cursor.table()], "TRUNCATE", captured), kind=StatementKind.TRUNCATED)
    if cursor.skip("DROP TABLE", "DROP TABLES"):
        cursor.skip("IF EXISTS")
        return _emptied(table_list(cursor), "DROP TABLE", captured)
    if cursor.skip("RENAME TABLE", "RENAME TABLES"):
        cursor.skip("IF EXISTS")
        return _emptied(renamed_tables(cursor), "RENAME TABLE", captured)
    for replacing in ("CREATE OR REPLACE TABLE", "CREATE OR REPLACE SEQUENCE"):  # that one drops a table, too
        if cursor.skip(replacing):
            return _emptied([cursor.table()], replacing, captured)
    if cursor.skip("CREATE TABLE") and not cursor.skip(
        "IF NOT EXISTS"
    ):  # the name was free, whatever came before
        return _emptied([cursor.table()], "CREATE TABLE", captured)
    if cursor.skip("DROP INDEX"):
        return _index_dropped(cursor, captured)
    if starts_alter(cursor):
        return _altered(cursor, captured, logs_cascades)
    words = cursor.words[cursor.at :]
    if is_unknown(words) and is_ours([cursor.database, *words], captured):
        return Statement(
            StatementKind.EMPTIED, refused=f"{' '.join(words[:4])}: it may drop or replace tables"
        )
    return Statement(StatementKind.OTHER)


def is_ours(names: Iterable[str], captured: IsCaptured) -> bool:
    """Returns whether one of these words names the migrated database."""
    return any(captured(TableId(unquoted(name), "")) is not None for name in names)


def _transaction_control(cursor: Words, words: Sequence[str]) -> Statement | None:
    first = words[0].upper()
    if first == "BEGIN" or cursor.skip("START TRANSACTION"):
        return Statement(StatementKind.BEGIN)
    if first == "COMMIT":
        return Statement(StatementKind.COMMIT)
    if first == "SAVEPOINT":
        return Statement(StatementKind.SAVEPOINT, unquoted(words[1]))
    if first == "ROLLBACK":
        cursor.skip("ROLLBACK")
        cursor.skip("WORK")
        if cursor.skip("TO"):
            cursor.skip("SAVEPOINT")
            return Statement(StatementKind.ROLLBACK_TO, cursor.identifier() or "")
        return Statement(StatementKind.ROLLBACK)
    if cursor.skip("XA START", "XA BEGIN"):
        return Statement(StatementKind.XA_START)
    if cursor.skip("XA COMMIT"):
        return Statement(StatementKind.XA_COMMIT, "".join(words[2:]))
    if cursor.skip("XA ROLLBACK"):
        return Statement(StatementKind.XA_ROLLBACK, "".join(words[2:]))
    return None


def _writes_no_rows(cursor: Words) -> bool:
    start = cursor.at
    if cursor.skip("ANALYZE"):
        cursor.skip("NO_WRITE_TO_BINLOG", "LOCAL")
        table = cursor.skip("TABLE", "TABLES")  # ANALYZE UPDATE ... runs the update
        cursor.at = start
        return table
    if _fills(cursor.words[cursor.at :]):
        return False
    return cursor.at >= len(cursor.words) or cursor.words[cursor.at].upper() in _WRITE_NO_ROWS


def _fills(words: Sequence[str]) -> bool:
    """CREATE TABLE from a query, which may call what changes rows. Logged row by row it has lost its query."""
    upper = [word.upper() for word in words]
    table = next((place for place in (1, 2, 3, 4) if upper[place : place + 1] == ["TABLE"]), None)
    if upper[:1] != ["CREATE"] or table is None or not set(upper[1:table]) <= {"OR", "REPLACE", "TEMPORARY"}:
        return False
    queried = zip(upper[table + 1 :], [*upper[table + 2 :], ""], strict=True)
    return any(
        word in ("SELECT", "TABLE") or (word == "VALUES" and following not in ("LESS", "IN"))
        for word, following in queried
    )


def _rows(
    query: QueryText, words: Sequence[str], database: str, captured: IsCaptured, ways: str
) -> Statement:
    """Statement-format DML: its rows aren't in the log. It concerns us if it runs in, or names, our database.

    A statement elsewhere may reach our tables through a view, a trigger, a routine or a foreign key. MySQL
    says which databases it wrote to; MariaDB doesn't, so there whatever might reach us counts as having done
    so.
    """
    names = {unquoted(word) for word in words}
    ours, how = is_ours((query.database, *words), captured), ""
    if not ours and query.updated is not None:
        ours = any(captured(TableId(name, "")) is not None for name in query.updated)
        how = ", and it wrote to this database though it doesn't name it"
    elif not ours:
        ours, how = bool(ways), f", and it may have reached this database by {ways}"
    if not ours:
        return Statement(StatementKind.OTHER)
    touched = [table for name in names if (table := captured(TableId(database, name))) is not None]
    reason = f"{words[0].upper()} logged as a statement: the rows it changed are not in the log{how}"
    return Statement(StatementKind.ROWS, tables=tuple(sorted(touched)), refused=reason)


def table_list(cursor: Words) -> list[TableId | None]:
    """Table names separated by commas."""
    tables = [cursor.table()]
    while cursor.skip(","):
        tables.append(cursor.table())
    return tables


def renamed_tables(cursor: Words) -> list[TableId | None]:
    """Old and new names of a RENAME TABLE, in their order."""
    tables: list[TableId | None] = []
    while True:
        tables.append(cursor.table())
        cursor.skip("NOWAIT")
        if cursor.skip("WAIT"):
            cursor.identifier()
        if cursor.skip("TO"):
            tables.append(cursor.table())
        if not cursor.skip(","):
            return tables


def _emptied(tables: Sequence[TableId | None], what: str, captured: IsCaptured) -> Statement:
    touched = [known for table in tables if table is not None and (known := captured(table)) is not None]
    refused = f"{what} of {', '.join(map(str, touched))}" if touched else ""
    return Statement(StatementKind.EMPTIED, tables=tuple(touched), refused=refused)


def starts_alter(cursor: Words) -> bool:
    """Steps over the beginning of an ALTER TABLE."""
    start = cursor.at
    if not cursor.skip("ALTER"):
        return False
    while cursor.skip("ONLINE", "OFFLINE", "IGNORE"):
        pass
    if cursor.skip("TABLE"):
        cursor.skip("IF EXISTS")
        return True
    cursor.at = start
    return False


def _altered(cursor: Words, captured: IsCaptured, logs_cascades: bool) -> Statement:
    ignoring = "IGNORE" in [word.upper() for word in cursor.words[: cursor.at]]
    table = cursor.table()
    known = captured(table) if table is not None else None
    new = new_name(cursor)
    if new is not None and (renamed := _emptied([table, new], "ALTER TABLE ... RENAME", captured)).refused:
        return renamed
    if known is None:
        return _swallowed(cursor, captured)
    if cursor.skip("WAIT"):
        cursor.identifier()
    cursor.skip("NOWAIT")
    clauses = clauses_of(cursor.words[cursor.at :])
    for clause in filter(moves_rows, clauses):
        return _emptied([table], f"ALTER TABLE ... {clause[:120]}", captured)
    why = next(filter(None, (why_refused(clause, logs_cascades) for clause in clauses)), "")
    if ignoring:
        why = "ALTER IGNORE TABLE: rows that don't fit what it adds vanish without row events"
    indexes = tuple(unquoted(found[1]) for clause in clauses if (found := _INDEX_GONE.match(clause)))
    changing = [] if why else [clause for clause in clauses if columns_of(clause)]
    columns = tuple(dict.fromkeys(unquoted(name) for clause in changing for name in columns_of(clause)))
    why = may_change(changing[0]) if changing else why
    pairs = [names for clause in changing if (names := renamed_by(clause)) is not None]
    merely = tuple((unquoted(old), unquoted(new)) for old, new in pairs)
    others = [name for clause in changing if renamed_by(clause) is None for name in columns_of(clause)]
    redefined = tuple(map(unquoted, others))
    return Statement(StatementKind.ALTERED, "", (known,), indexes, why, columns, merely, redefined)


def new_name(cursor: Words) -> TableId | None:
    """The name that the rest of an ALTER TABLE gives its table; of the default database where it names none."""
    for at in range(cursor.at, len(cursor.words)):
        rest = Words(cursor.words[at:], cursor.database)
        if rest.skip("RENAME") and not rest.skip(
            "COLUMN", "INDEX", "KEY"
        ):  # a name must be quoted to be RENAME
            rest.skip("TO", "AS", "=")
            return rest.table()
    return None


def _swallowed(cursor: Words, captured: IsCaptured) -> Statement:
    """ALTER of another table that takes the rows of a captured one: EXCHANGE PARTITION, CONVERT TABLE."""
    while cursor.at < len(cursor.words):
        if cursor.skip("WITH TABLE", "CONVERT TABLE"):
            return _emptied([cursor.table()], "EXCHANGE PARTITION or CONVERT TABLE", captured)
        cursor.at += 1
    return Statement(StatementKind.OTHER)


def _index_dropped(cursor: Words, captured: IsCaptured) -> Statement:
    cursor.skip("IF EXISTS")
    index = cursor.identifier() or ""
    cursor.skip("ON")
    table = cursor.table()
    known = captured(table) if table is not None else None
    if known is None:
        return Statement(StatementKind.OTHER)
    refused = "DROP INDEX of the primary key" if index.upper() == "PRIMARY" else ""
    return Statement(StatementKind.ALTERED, tables=(known,), indexes=(index,), refused=refused)
