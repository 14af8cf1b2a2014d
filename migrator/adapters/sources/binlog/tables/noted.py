"""Notes that a log reader of a binlog keeps of a table for the next one.

- Up to where its name led to another table (see ``former_tables``).
- Its columns that were changed while no mapping needed them: rows that were read before have other values there,
  and a mapping that needs such a column one day has to have them read again.
- Needed columns that only got another name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from migrator.errors import SchemaError
from migrator.model.table import TableId, TableSchema
from migrator.ports.log_notes import RENAMED, LogNotes, with_renamed

_FORMER, _CHANGED = "former", "columns"


def note_former(notes: LogNotes, table: TableId, order: int) -> None:
    """The name led to another table up to there. What the target has of that one must go."""
    notes.replace(table)
    notes.note(table, json.dumps({_FORMER: order}))


def noted_former(notes: LogNotes, tables: Iterable[TableId]) -> dict[TableId, int]:
    """Reads the places up to which names led to other tables. They are noted again: asking gives notes up."""
    found: dict[TableId, int] = {}
    for table in tables:
        noted = _parsed(notes.of(table)) or _parsed(notes.given_up(table))
        if _FORMER in noted:
            found[table] = int(noted[_FORMER])
            _note(notes, table, {**_parsed(notes.of(table)), _FORMER: noted[_FORMER]})
    return found


@dataclass(frozen=True, slots=True)
class NotedChanges:
    """Implements ``ColumnChanges``: notes them for the next reader."""

    notes: LogNotes

    def unneeded(self, table: TableId, columns: Sequence[str]) -> None:
        """See ``ColumnChanges.unneeded``."""
        noted = _parsed(self.notes.of(table))
        _note(self.notes, table, {**noted, _CHANGED: sorted({*noted.get(_CHANGED, ()), *columns})})

    def renamed(self, table: TableId, names: Sequence[tuple[str, str]]) -> None:
        """See ``ColumnChanges.renamed``; a mapping that was adapted reads on under the new name.

        Raises ``SchemaError`` for a column that was changed while no mapping needed it under its old name.
        """
        noted = _parsed(self.notes.of(table))
        if changed := [new for old, new in names if old in noted.get(_CHANGED, ()) and old != new]:
            self.unneeded(table, changed)
            raise _changed(table, changed)
        if names:
            _note(self.notes, table, {**noted, RENAMED: with_renamed(noted.get(RENAMED, ()), names)})


def refuse_changed(notes: LogNotes, schemas: Iterable[TableSchema]) -> None:
    """Raises ``SchemaError`` for a column that a mapping needs now and that was changed while none did."""
    for schema in schemas:
        changed = [name for name in _parsed(notes.of(schema.id)).get(_CHANGED, ()) if schema.needs(name)]
        if changed:
            raise _changed(schema.id, changed)


def _changed(table: TableId, columns: Sequence[str]) -> SchemaError:
    return SchemaError(
        f"the mapping reads a column of {table} that was changed while no mapping did",
        where=f"{table}, column {', '.join(columns)}",
        cause="rows that were read before have other values there, or none",
        remedy=f"have the rows read again, then start again: migrator dump start --table {table.name}",
    )


def _note(notes: LogNotes, table: TableId, parts: dict[str, Any]) -> None:
    notes.note(table, json.dumps(parts))


def _parsed(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text or "{}")
    return found
