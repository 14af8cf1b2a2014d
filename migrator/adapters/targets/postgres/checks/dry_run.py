"""Tries rows on a PostgreSQL target, in a temporary copy of the table that nobody else sees."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from migrator.adapters.targets.postgres.refusal import Refusal
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.prepared import prepare
from migrator.adapters.targets.postgres.rows.staging import StagingTables
from migrator.adapters.targets.postgres.rows.writer import BatchWriter, DirectLoads
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.rows import renamed
from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.ports.target import TargetRows

_COPY = TableId("pg_temp", "migrator_dry_run")


def refused(settings: PostgresTarget, structure: Structure, rows: pa.Table) -> TargetError | None:
    """Returns the error with which the table's types and conditions refuse rows; None if they take them.

    Foreign keys aren't asked, nor rows that the table has. The copy has no defaults and triggers, so that trying
    moves no sequence. Raises ``ConnectionFailed``, ``TargetError`` where rows can't be tried, the session's
    ``ConnectionLost``.
    """
    copy = replace(
        structure,
        table=replace(structure.table, id=_COPY),
        outgoing=(),
        incoming=(),
        exclusive=frozenset(),
        deferrable=False,
    )
    session = Session(settings)
    try:
        session.run("BEGIN")
        session.run(
            f"CREATE TEMPORARY TABLE {_COPY.name}"
            f" (LIKE {qualified(structure.table.id)} INCLUDING CONSTRAINTS INCLUDING GENERATED)"
        )
        for column in structure.table.columns:
            if not (column.nullable or column.generated or column.name in rows.column_names):
                session.run(f"ALTER TABLE {qualified(_COPY)} ALTER {quoted(column.name)} DROP NOT NULL")
        staging = StagingTables(session)
        staging.begin()
        prepared = prepare(copy, TargetRows(copy.table, None, None, rows, True), staging)
        if prepared is not None:
            BatchWriter(session, settings.user, DirectLoads(), {_COPY: copy}).insert(prepared)
    except TargetError as error:
        return renamed(error, _COPY, structure.table.id)
    except Refusal as refusal:
        raise TargetError(
            "the target can't try rows", where=str(structure.table.id), cause=refusal.cause()
        ) from None
    finally:
        session.close()
    return None
