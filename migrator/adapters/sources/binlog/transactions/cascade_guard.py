"""Stops the log reader at the first change that may have changed captured rows without a trace: see
``foreign_keys``.

The catalog says what cascades now; the log is read from some place before. So places remember a digest of what was
watched there, and reading goes on only where the catalog still says the same: a foreign key that was dropped while
nobody read would hide what it did before. While reading, the log itself says what changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.events.table_map import parse_table_map, table_of
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.statements.altered import Altered, altered
from migrator.adapters.sources.binlog.statements.foreign_keys import (
    Cascades,
    ForeignKey,
    Trigger,
    Watch,
    find_cascades,
    read_foreign_keys,
    read_triggers,
)
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.tables.captured_tables import LoggedTable, logged_table
from migrator.adapters.sources.binlog.tables.row_events import changes_of
from migrator.errors import GapError, SchemaError, SourceError
from migrator.model.table import Column, TableId, TableSchema

_NO_CHECKS, _BY_SQL_LAYER = 0x02, 0x10
"""Flags of row events: the session doesn't check foreign keys, so none acts; the actions are logged as rows."""
_DROPPED_KEY = re.compile(r"DROP (?:FOREIGN KEY|CONSTRAINT) (?:IF EXISTS )?(`[^`]*`|\S+)", re.IGNORECASE)
_REMEDY = (
    "start the migration anew (docs/how-to/start-anew.md)"
    "; before that, give the parent the BEFORE DELETE trigger that `migrator check` shows (what"
    " triggers do is logged), or make the foreign key RESTRICT and let the application change the children"
)


@dataclass(frozen=True, slots=True)
class ForeignKeys:
    """The catalog's foreign keys and triggers as reading begins; empty where the server logs what foreign keys do."""

    keys: Sequence[ForeignKey] = ()
    triggers: Sequence[Trigger] = ()

    def cascades(self, captured: Collection[TableId]) -> Cascades:
        """Returns those that are to be watched."""
        return find_cascades(self.keys, captured, self.triggers)


def read_cascading(connection: Any, database: str) -> ForeignKeys:
    """Reads what the catalog of a server that doesn't log cascades says now."""
    return ForeignKeys(read_foreign_keys(connection, database), read_triggers(connection, database))


class CascadeGuard:
    """Watches parents.

    Args:
        found: what the catalog says.
        captured: the captured tables.
        charsets, dialect: of the server.
        fold_case: whether table names compare without case.
    """

    def __init__(
        self,
        found: ForeignKeys,
        captured: Collection[TableId],
        charsets: Charsets,
        dialect: Dialect,
        fold_case: bool = False,
    ):
        self._found = found
        self._captured = captured
        self._charsets = charsets
        self._dialect = dialect
        self._fold_case = fold_case
        self._layouts: dict[bytes, LoggedTable] = {}
        self._parents: dict[int, bytes] = {}
        self._follow()

    def _follow(self) -> None:
        self._cascades = self._found.cascades(self._captured)
        self._watches = {self._folded(table): watch for table, watch in self._cascades.watched.items()}
        self._ways = {self._folded(table) for table in (*self._cascades.concerned, *self._cascades.watched)}
        self._layouts.clear()
        self._parents.clear()

    def digest(self) -> str:
        """Returns the digest of what is watched, for the places from here on."""
        return self._cascades.digest()

    def go_on(self, digest: str | None, where: str) -> None:
        """Reading goes on at a place that remembers a digest (None: it is older than that, or a first start).

        Raises ``GapError`` when the catalog says otherwise now.
        """
        if digest is not None and digest != self.digest():
            raise GapError(
                "foreign keys that change captured rows, or their triggers, were changed while nobody read the log",
                where=where,
                cause="what they did before that can't be told from the log",
                remedy="change them back and start again; else start the migration anew (docs/how-to/start-anew.md)",
            )

    @property
    def idle(self) -> bool:
        """True when no table is watched."""
        return not self._watches

    def watches(self, table: TableId) -> bool:
        """Returns whether row events of a table are to be checked."""
        return self._folded(table) in self._watches

    def new_file(self) -> None:
        """Table numbers begin anew."""
        self._parents.clear()

    def table_map(self, body: bytes) -> int:
        """A TABLE_MAP event; gives its table's number."""
        number = int.from_bytes(body[:6], "little")
        if self._watches:
            self._parents.pop(number, None)
            if self.watches(table_of(body)[1]):
                self._parents[number] = body
        return number

    def check(self, event: Event) -> None:
        """A row event. Raises ``SourceError`` when it may have cascaded."""
        if not self._parents:
            return
        table_map = self._parents.get(int.from_bytes(event.body[:6], "little"))
        if table_map is None:
            return
        table = table_of(table_map)[1]
        watch = self._watches.get(self._folded(table))
        if watch is None or event.body[6] & (_NO_CHECKS | _BY_SQL_LAYER) or event.type in events.WRITE_ROWS:
            return
        if event.type in events.DELETE_ROWS:
            if watch.delete:
                raise _stop(table, "deleted", watch.delete)
        elif watch.update:
            layout = self._layout(table_map, watch)
            for change in changes_of(event, layout):
                pairs = zip(layout.schema.names(), change.before or (), change.after or (), strict=True)
                changed = next((name for name, before, after in pairs if before != after), None)
                if changed is not None:
                    raise _stop(table, f"updated in {changed}", watch.update[changed])

    def _layout(self, body: bytes, watch: Watch) -> LoggedTable:
        """Returns the layout that the watched columns are read by."""
        shape = body[6:]
        if shape not in self._layouts:
            layout = parse_table_map(body, self._dialect.character)
            wanted = ["" if column.name in watch.update else None for column in layout.columns]
            names = [column.name for column in layout.columns if column.name in watch.update]
            if len(names) != len(watch.update):
                raise _changed(layout.table, f"it has no column {', '.join({*watch.update} - {*names})}")
            schema = TableSchema(layout.table, tuple(Column(name, "", True, "", "") for name in names), ())
            self._layouts[shape] = logged_table(schema, layout.columns, wanted, self._charsets, self._dialect)
        return self._layouts[shape]

    def follow(self, query: QueryText) -> None:
        """A statement that changes no row. Raises ``SchemaError`` when what cascades from then on isn't known."""
        if not self._found.keys:
            return
        change = altered(query)
        if change.dropped_trigger in self._cascades.triggers:
            triggers = [trigger for trigger in self._found.triggers if trigger.name != change.dropped_trigger]
            self._found = replace(self._found, triggers=triggers)
            self._follow()
        for table in change.moved:
            if self._folded(table) in self._ways and table not in self._captured:
                raise _changed(table, f"statement: {query.text[:200]}")
        if change.table is not None and self._folded(change.table) in self._ways:
            self._altered(change.table, change, query)

    def _altered(self, table: TableId, change: Altered, query: QueryText) -> None:
        if change.cascades:
            raise _changed(table, f"statement: {query.text[:200]}")
        dropped = {found[1].strip("`") for clause in change.clauses if (found := _DROPPED_KEY.match(clause))}
        if dropped:
            keys = [
                key
                for key in self._found.keys
                if self._folded(key.child) != self._folded(table) or key.name not in dropped
            ]
            self._found = replace(self._found, keys=keys)
            self._follow()

    def _folded(self, table: TableId) -> TableId:
        return TableId(table.schema.lower(), table.name.lower()) if self._fold_case else table


def _stop(table: TableId, what: str, why: str) -> SourceError:
    return SourceError(
        f"rows of {table} were {what}: a foreign key may have changed captured rows, which the server doesn't log",
        where=str(table),
        cause=why,
        remedy=_REMEDY,
    )


def _changed(table: TableId, cause: str) -> SchemaError:
    return SchemaError(
        "a table whose rows cascade to captured ones was changed, and what cascades now isn't known",
        where=str(table),
        cause=cause,
        remedy="start the migration anew (docs/how-to/start-anew.md)",
    )
