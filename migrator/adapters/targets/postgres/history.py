"""Acts that are written in a transaction that is open anyway (see ``schema.acts``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.schema.acts import act_sql, note, note_lead, values

_TABLE = "migrator.history"


def led(session: Session, settings: PostgresTarget, epoch: int) -> None:
    """Notes in the history that this process leads from now on."""
    sql = act_sql(_TABLE, lambda number, kind: f"${number}::{kind}")
    note_lead(
        session.run, session.rows, sql, settings.migration, settings.server.user, epoch, settings.reason
    )


def acted(connection: psycopg.Connection[Any], settings: PostgresTarget, act: str, detail: str) -> None:
    """Somebody did this."""

    def run(statement: str, given: Sequence[Any]) -> None:
        connection.execute(statement, given)

    def rows(statement: str, given: Sequence[Any]) -> list[tuple[Any, ...]]:
        return list(connection.execute(statement, given).fetchall())

    row = values(settings.migration, act, settings.server.user, reason=settings.reason, detail=detail)
    note(run, rows, act_sql(_TABLE, lambda _, kind: f"%s::{kind}"), row)
