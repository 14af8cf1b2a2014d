"""The changes by DDL of the things that make rows cascade: foreign keys, triggers, names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrator.adapters.sources.binlog.statements.alter_clauses import SILENT_CASCADE, clauses_of
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.sql_words import Unreadable
from migrator.adapters.sources.binlog.statements.statements import (
    Words,
    renamed_tables,
    starts_alter,
    table_list,
    words_of,
)
from migrator.model.table import TableId


@dataclass(frozen=True, slots=True)
class Altered:
    """The changes by one DDL statement of the things that make rows cascade.

    Attributes:
        table: of an ALTER TABLE.
        clauses: of it.
        cascades: whether it adds a foreign key that acts by itself.
        moved: tables that are renamed (both names) or dropped.
        dropped_trigger: the name of a trigger that is dropped or replaced; empty for none.
    """

    table: TableId | None = None
    clauses: tuple[str, ...] = ()
    cascades: bool = False
    moved: tuple[TableId, ...] = ()
    dropped_trigger: str = ""


def altered(query: QueryText) -> Altered:
    """Returns what a statement alters, whatever table it is about; nothing of one that ``judge`` can't read."""
    try:
        cursor = Words(words_of(query), query.database)
    except Unreadable:
        return Altered()
    if cursor.skip("SET STATEMENT"):
        while cursor.at < len(cursor.words) and not cursor.skip("FOR"):
            cursor.at += 1
    if cursor.skip("DROP TABLE", "DROP TABLES"):
        cursor.skip("IF EXISTS")
        return Altered(moved=tuple(table for table in table_list(cursor) if table is not None))
    if cursor.skip("RENAME TABLE", "RENAME TABLES"):
        cursor.skip("IF EXISTS")
        return Altered(moved=tuple(table for table in renamed_tables(cursor) if table is not None))
    if cursor.skip("DROP TRIGGER"):
        cursor.skip("IF EXISTS")
        return Altered(dropped_trigger=getattr(cursor.table(), "name", ""))
    if "TRIGGER" in (word.upper() for word in cursor.words[:10]) and cursor.skip("CREATE OR REPLACE"):
        while cursor.at < len(cursor.words) and not cursor.skip("TRIGGER"):
            cursor.at += 1
        return Altered(dropped_trigger=getattr(cursor.table(), "name", ""))
    if not starts_alter(cursor):
        return Altered()
    table = cursor.table()
    clauses = tuple(clauses_of(cursor.words[cursor.at :]))
    renamed = any(
        re.match(r"RENAME (TO|AS|=|(?!(COLUMN|INDEX|KEY)\b)\S)", clause, re.I) for clause in clauses
    )
    cascades = any(SILENT_CASCADE.search(clause) for clause in clauses)
    return Altered(table, clauses, cascades, (table,) if renamed and table is not None else ())
