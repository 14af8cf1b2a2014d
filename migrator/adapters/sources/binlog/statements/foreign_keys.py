"""Foreign keys by which the server changes rows of captured tables without logging them.

InnoDB carries ON DELETE and ON UPDATE actions out below the log: of a deleted parent the log has the parent's row
only. Which children changed can't be found out afterwards, so a change that may cascade is recognised at the
parent.

Chains count: where a cascade changes rows of a table that nobody captures, and these have captured children
in turn, the first parent of the chain is watched as well. A BEFORE DELETE trigger that does what the action
would do leaves nothing for InnoDB to do, and what triggers do is logged: such a foreign key is not watched.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.sql_words import Unreadable
from migrator.adapters.sources.binlog.statements.statements import words_of
from migrator.connections.mysql.sql import query, quote, quote_table
from migrator.model.table import TableId

_IDLE = ("RESTRICT", "NO ACTION")
_MOST = "CASCADE"
_ACTION = "(CASCADE|SET NULL|SET DEFAULT|RESTRICT|NO ACTION)"
_RULES = re.compile(rf"\)(?: ON DELETE {_ACTION})?(?: ON UPDATE {_ACTION})?,?$")
"""The end of a foreign key's line of SHOW CREATE TABLE."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key. ``columns`` of ``child`` refer to ``referenced`` of ``parent``, in this order."""

    name: str
    child: TableId
    parent: TableId
    columns: tuple[str, ...]
    referenced: tuple[str, ...]
    on_delete: str
    on_update: str

    def acts(self) -> bool:
        """Returns whether the server changes children by itself."""
        return self.on_delete not in _IDLE or self.on_update not in _IDLE

    def rules(self) -> str:
        """Returns the key's actions as they are declared, without those that change nothing."""
        rules = (("DELETE", self.on_delete), ("UPDATE", self.on_update))
        return " ".join(f"ON {verb} {rule}" for verb, rule in rules if rule not in _IDLE)

    def trigger(self) -> str:
        """The body of a BEFORE DELETE trigger of the parent that does what ON DELETE would do; empty for none."""
        pairs = zip(self.columns, self.referenced, strict=True)
        where = " AND ".join(f"{quote(column)} = OLD.{quote(parent)}" for column, parent in pairs)
        if self.on_delete == "CASCADE":
            return f"DELETE FROM {quote_table(self.child)} WHERE {where}"
        if self.on_delete == "SET NULL":
            empty = ", ".join(f"{quote(column)} = NULL" for column in self.columns)
            return f"UPDATE {quote_table(self.child)} SET {empty} WHERE {where}"
        return ""


@dataclass(slots=True)
class Watch:
    """The changes of a parent that may cascade unseen: the constraint that does it, by what is changed."""

    delete: str = ""
    update: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cascades:
    """The foreign keys of a database, as the catalog has them.

    Attributes:
        watched: parents and the changes of theirs that cascade to captured rows.
        concerned: every table on the way, captured tables included: their foreign keys matter.
        triggers: names of those that stand in for an action.
    """

    watched: Mapping[TableId, Watch]
    concerned: frozenset[TableId]
    triggers: frozenset[str]

    def digest(self) -> str:
        """A short text that differs when anything here does; empty when nothing cascades unseen."""
        shown = [(str(table), watch.delete, sorted(watch.update)) for table, watch in self.watched.items()]
        if not shown and not self.triggers:
            return ""
        content = repr((sorted(shown), sorted(self.triggers)))
        return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def read_foreign_keys(connection: Any, database: str) -> list[ForeignKey]:
    """All foreign keys of a database's tables that the user may see.

    MariaDB shows what they do (REFERENTIAL_CONSTRAINTS) only to those who may write to a table. A login that reads
    gets it from the table's own statement.
    """
    rows = query(
        connection,
        "SELECT k.CONSTRAINT_NAME, k.TABLE_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME,"
        " k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE FROM information_schema.KEY_COLUMN_USAGE k"
        " LEFT JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = %s"
        " AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME"
        " WHERE k.TABLE_SCHEMA = %s AND k.REFERENCED_TABLE_NAME IS NOT NULL"
        " ORDER BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION",
        (database, database),
    )
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault((row[1], row[0]), []).append(row)
    hidden = sorted({table for (table, _), parts in found.items() if parts[0][6] is None})
    statements = {table: _statement(connection, TableId(database, table)) for table in hidden}
    return [
        ForeignKey(
            name,
            TableId(database, table),
            TableId(parts[0][3], parts[0][4]),
            tuple(part[2] for part in parts),
            tuple(part[5] for part in parts),
            *((parts[0][6], parts[0][7]) if table not in statements else rules(statements[table], name)),
        )
        for (table, name), parts in found.items()
    ]


def _statement(connection: Any, table: TableId) -> str:
    """SHOW CREATE TABLE."""
    return str(query(connection, f"SHOW CREATE TABLE {quote_table(table)}")[0][1])


def rules(statement: str, name: str) -> tuple[str, str]:
    """Returns what a foreign key does on DELETE and on UPDATE, as a table's statement says it.

    A key that isn't found there is taken for one that does the most: who reads on would miss what it does.
    """
    names = {f"`{name.replace('`', '``')}`", '"' + name.replace('"', '""') + '"', name}
    for line in map(str.strip, statement.splitlines()):
        if any(line.startswith(f"CONSTRAINT {spelling} FOREIGN KEY ") for spelling in names):
            found = _RULES.search(line)
            return (found[1] or "RESTRICT", found[2] or "RESTRICT") if found else (_MOST, _MOST)
    return _MOST, _MOST


@dataclass(frozen=True, slots=True)
class Trigger:
    """A BEFORE DELETE trigger."""

    name: str
    table: TableId
    body: str


def read_triggers(connection: Any, database: str) -> list[Trigger]:
    """The BEFORE DELETE triggers of a database that the user may see."""
    rows = query(
        connection,
        "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT FROM information_schema.TRIGGERS"
        " WHERE EVENT_OBJECT_SCHEMA = %s AND ACTION_TIMING = 'BEFORE' AND EVENT_MANIPULATION = 'DELETE'",
        (database,),
    )
    return [Trigger(name, TableId(database, table), body) for name, table, body in rows]


def _words(statement: str, database: str) -> tuple[str, ...]:
    """The words of a trigger's body, names without the database that the trigger is in."""
    try:
        words = [word.strip("`").lower() for word in words_of(QueryText("", statement))]
    except Unreadable:
        return (statement,)
    own = [database.lower(), "."]
    places = {at + step for at in range(len(words)) if words[at : at + 2] == own for step in (0, 1)}
    return tuple(word for at, word in enumerate(words) if at not in places)


def find_cascades(
    keys: Iterable[ForeignKey],
    captured: Collection[TableId],
    triggers: Iterable[Trigger],
) -> Cascades:
    """Finds which changes of which tables change captured rows unseen.

    ``below`` are the changes that InnoDB makes by itself, to a table that nobody captures, and that go on
    from there: no trigger runs for those.
    """
    keys = [key for key in keys if key.acts()]
    does = {(trigger.table, _words(trigger.body, trigger.table.schema)): trigger.name for trigger in triggers}
    relied: set[str] = set()
    watched: dict[TableId, Watch] = {}
    below: dict[TableId, Watch] = {}
    for _ in range(len(keys) + 1):  # a chain is no longer than all keys
        for key in keys:
            deletes, updates = _silent(key, captured, below)
            _note(below, key, deletes, updates)
            trigger = does.get((key.parent, _words(key.trigger(), key.parent.schema))) if deletes else None
            relied |= {trigger} if trigger is not None else set()
            _note(watched, key, "" if trigger is not None else deletes, updates)
    return Cascades(watched, frozenset({*captured, *below}), frozenset(relied))


def _silent(
    key: ForeignKey, captured: Collection[TableId], below: Mapping[TableId, Watch]
) -> tuple[str, str]:
    """Returns why a delete and why an update of the parent's key matter; empty where they don't."""
    own = f"{key.child} constraint {key.name} {key.rules()}"
    if key.child in captured:
        return own if key.on_delete not in _IDLE else "", own if key.on_update not in _IDLE else ""
    onward = below.get(key.child, Watch())
    update = next((why for column, why in onward.update.items() if column in key.columns), "")
    deletes = onward.delete if key.on_delete == "CASCADE" else update if key.on_delete not in _IDLE else ""
    updates = update if key.on_update not in _IDLE else ""
    return deletes and f"{own}, {deletes}", updates and f"{own}, {updates}"


def _note(into: dict[TableId, Watch], key: ForeignKey, deletes: str, updates: str) -> None:
    if not deletes and not updates:
        return
    watch = into.setdefault(key.parent, Watch())
    watch.delete = watch.delete or deletes
    for column in key.referenced if updates else ():
        watch.update.setdefault(column, updates)
