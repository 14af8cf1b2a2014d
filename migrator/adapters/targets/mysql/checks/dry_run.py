"""Tries rows on a MySQL or MariaDB target, in a temporary copy of the table that nobody else sees."""

from __future__ import annotations

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


def refused(settings: MysqlTarget, structure: Structure, rows: pa.Table) -> TargetError | None:
    """Returns the error with which the table's types and conditions refuse rows; None if they take them.

    Foreign keys aren't asked, nor rows that the table has.

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
    session = Session(settings)
    try:
        there = _copied(session, structure, copy, rows.column_names)
        prepared = prepare(copy, TargetRows(copy.table, None, None, rows, True), StagingTables(session))
        if prepared is not None:
            BatchWriter(session, {place: copy}).insert(prepared, there)
    except TargetError as error:
        return renamed(error, place, structure.table.id)
    except Refusal as refusal:
        raise TargetError(
            "the target can't try rows", where=str(structure.table.id), cause=refusal.cause()
        ) from None
    finally:
        session.close()
    return None


def _copied(session: Session, structure: Structure, copy: Structure, written: list[str]) -> bool:
    """Makes the copy; False where the server can't (partitions, full text): then staging alone tells."""
    name = qualified(copy.table.id)
    try:
        session.run(f"CREATE TEMPORARY TABLE {name} LIKE {qualified(structure.table.id)}")
    except Refusal as refusal:
        if refusal.retryable():
            raise
        return False
    for storage in structure.storage:
        column = storage.column
        if not (column.nullable or column.generated or column.has_default or column.name in written):
            session.run(f"ALTER TABLE {name} MODIFY {quoted(column.name)} {storage.declared} NULL")
    return True
