"""Tries rows on a MySQL or MariaDB target, in a temporary copy of the table that nobody else sees."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from migrator.adapters.targets.mysql.refusal import Refusal
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.rows.prepared import prepare
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.rows.writer import BatchWriter
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.structure import Structure
from migrator.adapters.targets.shared.rows import renamed
from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.ports.target import TargetRows

_NAME = "migrator_dry_run"
_CONDITION = re.compile(r"  CONSTRAINT (`(?:[^`]|``)+`) CHECK \(")
_COLUMN = re.compile(r"  (`(?:[^`]|``)+`) ")
_DRAWN = "DEFAULT nextval("
"""A default of MariaDB that a sequence makes: trying it would move the sequence."""


def refused(
    settings: MysqlTarget, structure: Structure, rows: pa.Table, untried: Collection[str]
) -> TargetError | None:
    """Returns the error with which the table's types and conditions refuse rows; None if they take them.

    Foreign keys aren't asked, nor rows that the table has, nor what depends on ``untried`` columns.

    Raises ``ConnectionFailed``, ``TargetError`` where rows can't be tried, the session's ``ConnectionLost``.
    """
    place = TableId(settings.server.database, _NAME)
    copy = replace(
        structure,
        table=replace(structure.table, id=place),
        outgoing=(),
        incoming=(),
        exclusive=frozenset(),
    )
    session, names = Session(settings), dict[str, str]()
    try:
        there = _copied(session, structure, copy)
        if there:
            names = _names(session, structure, copy)
            _loosen(session, settings.server.kind, copy, _unknown(session, copy, rows.column_names, untried))
        prepared = prepare(copy, TargetRows(copy.table, None, None, rows, True), StagingTables(session))
        if prepared is not None:
            BatchWriter(session, {place: copy}).insert(prepared, there)
    except TargetError as error:
        for name in sorted(names, key=len, reverse=True):
            error = renamed(
                error, TableId(settings.server.database, name), TableId(settings.server.database, names[name])
            )
        return renamed(error, place, structure.table.id)
    except Refusal as refusal:
        raise TargetError(
            "the target can't try rows", where=str(structure.table.id), cause=refusal.cause()
        ) from None
    finally:
        session.close()
    return None


def _copied(session: Session, structure: Structure, copy: Structure) -> bool:
    """Makes the copy; False where the server can't (partitions, full text): then staging alone tells."""
    original, name = qualified(structure.table.id), qualified(copy.table.id)
    try:
        session.run(f"CREATE TEMPORARY TABLE {name} LIKE {original}")
    except Refusal as refusal:
        if refusal.retryable():
            raise
        return False
    return True


def _lines(session: Session, table: Structure) -> list[str]:
    """The lines of a table's declaration."""
    ((_, declared, *_),) = session.rows(f"SHOW CREATE TABLE {qualified(table.table.id)}")
    text = declared.decode() if isinstance(declared, bytes) else str(declared)
    return [line.removesuffix(",") for line in text.split("\n")]


def _names(session: Session, structure: Structure, copy: Structure) -> dict[str, str]:
    """The copy's names of conditions and the table's: MySQL gives those of a copy new ones, in the same order."""
    found = (
        [match[1] for line in _lines(session, table) if (match := _CONDITION.match(line))]
        for table in (copy, structure)
    )
    return {
        own[1:-1].replace("``", "`"): original[1:-1].replace("``", "`")
        for own, original in zip(*found, strict=False)
        if own != original
    }


def _unknown(
    session: Session, copy: Structure, written: Collection[str], untried: Collection[str]
) -> set[str]:
    """Columns of which nobody knows here what they will hold: rows don't have them, and no default says it."""
    drawn = {match[1] for line in _lines(session, copy) if _DRAWN in line and (match := _COLUMN.match(line))}
    return {
        column.name
        for column in copy.table.columns
        if column.name not in written
        and not column.generated
        and (
            column.name in untried
            or quoted(column.name) in drawn
            or not (column.nullable or column.has_default)
        )
    }


def _loosen(session: Session, kind: str, copy: Structure, unknown: Collection[str]) -> None:
    """Lets unknown columns be empty in the copy, and leaves out what the table asks of them."""
    if not unknown:
        return
    change = f"ALTER TABLE {qualified(copy.table.id)}"
    drop = "DROP CHECK" if kind == "mysql" else "DROP CONSTRAINT"
    computed = {column.name for column in copy.table.columns if column.generated}
    unsure = [quoted(name) for name in (*unknown, *computed)]
    declared = dict[str, str]()
    for line in _lines(session, copy):
        if match := _COLUMN.match(line):
            declared[match[1]] = line
        elif (match := _CONDITION.match(line)) and any(name in line for name in unsure):
            session.run(f"{change} {drop} {match[1]}")
    for storage in copy.storage:
        name = quoted(storage.column.name)
        line = declared.get(name, "")
        own, _, condition = line.partition(" CHECK (")  # MariaDB's, of a column
        if storage.column.name in unknown:
            session.run(f"{change} MODIFY {name} {storage.declared} NULL")
        elif storage.column.name in computed:
            session.run(f"{change} MODIFY {own.replace(' NOT NULL', '')}")
        elif any(other in condition for other in unsure):
            session.run(f"{change} MODIFY {own}")
