"""Decides whether a table that looks different in the log can be carried on.

A Relation message shows names and types of the published columns at its place in the log. Carried on: columns
added, a text column allowed to be longer, and whatever becomes of a column that no mapping needs. Stopped, named:
needed columns dropped, renamed or retyped, and a changed key.

Columns are told by their names here. That a name leads to another column by now (renamed, and a new one added under
the old name) is told by their numbers, see ``Relations``.
"""

from __future__ import annotations

import re
from dataclasses import replace

from migrator.errors import SchemaError
from migrator.model.table import Column, TableSchema

_LIMITED = re.compile(r"(character varying|bit varying)\((\d+)\)")
_UNLIMITED = {"character varying": ("character varying", "text"), "bit varying": ("bit varying",)}


def carried_on(
    known: TableSchema, seen: tuple[Column, ...], now: TableSchema | None, where: str
) -> TableSchema:
    """The row schema to use from here on: ``known`` itself when nothing changed.

    Args:
        known: the schema used so far.
        seen: the columns as the log has them here.
        now: the table as the catalog has it at present, later than ``where``; None if it is gone.
        where: position, for messages.

    Raises SchemaError naming the table, the column and the position.
    """
    if now is not None and now.key != known.key:
        raise _stop(known, f"its key changed from ({', '.join(known.key)}) to ({', '.join(now.key)})", where)
    found = {column.name: column for column in seen}
    for place, column in enumerate(known.columns):
        if not known.needs(column.name):
            continue
        if column.name in found:
            older = now is not None and column.source_type == _declared(now, column.name)
            _check_same(known, column, found[column.name], where, older=older)
        elif place < len(seen):
            raise _stop(
                known,
                f"column {column.name!r} was dropped or renamed (the log has {seen[place].name!r} there)",
                where,
            )
        elif now is None or column.name not in now.names():
            raise _stop(known, f"column {column.name!r} was dropped", where)
        # Otherwise this place of the log is older than the column: reading began behind an ADD COLUMN.
    facts = {column.name: column for column in known.columns}
    columns = tuple(
        replace(column, nullable=facts[column.name].nullable, collation=facts[column.name].collation)
        if column.name in facts
        else _with_catalog_facts(column, known, now)
        for column in seen
    )
    changed = replace(known, columns=columns)
    for name, why in changed.unfit_names().items():
        raise _stop(known, f"column {name!r}: {why}", where)
    missing = [name for name in known.key if name not in changed.names()]
    if missing:
        raise _stop(known, f"key column {missing[0]!r} isn't in the log", where)
    return known if changed.columns == known.columns else changed


def _declared(table: TableSchema, name: str) -> str:
    return next((column.source_type for column in table.columns if column.name == name), "")


def _check_same(known: TableSchema, old: Column, new: Column, where: str, older: bool) -> None:
    """``older``: the known column is as the catalog has it, so a place that shows another one is of before a change.

    What that did to rows is told by looks at the catalog (see ``rewritten``).
    """
    wider = _same_or_wider(old.source_type, new.source_type)
    if old.type != new.type or not (wider or (older and _same_or_wider(new.source_type, old.source_type))):
        raise _stop(
            known, f"column {old.name!r} changed its type from {old.source_type} to {new.source_type}", where
        )


def _same_or_wider(old: str, new: str) -> bool:
    """Tells whether values keep their text. Only a longer limit is sure to: any other change rewrites rows
    unlogged.
    """
    if old == new:
        return True
    before, after = _LIMITED.fullmatch(old), _LIMITED.fullmatch(new)
    if before is None:
        return False
    if after is None:
        return new in _UNLIMITED[before[1]]
    return before[1] == after[1] and int(after[2]) >= int(before[2])


def _with_catalog_facts(seen: Column, known: TableSchema, now: TableSchema | None) -> Column:
    for column in now.columns if now is not None else ():
        if column.name == seen.name and column.type == seen.type:
            return Column(seen.name, seen.type, column.nullable, seen.source_type, column.collation)
    return seen


def _stop(known: TableSchema, cause: str, where: str) -> SchemaError:
    return SchemaError(
        f"table {known.id} changed in a way that can't be carried on",
        where=f"{known.id} at {where}",
        cause=cause,
        remedy="undo the change, or adapt the mapping and start again (docs/how-to/schema-changes.md says where rows"
        " have to be read once more); if that stops here again, start the migration anew (docs/how-to/start-anew.md)",
    )
