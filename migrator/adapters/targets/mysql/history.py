"""Acts that are written in a transaction that is open anyway (see ``schema.acts``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.schema.acts import act_sql, note, note_lead, values
from migrator.schema.dialects import MYSQL_HISTORY

_SQL = act_sql(MYSQL_HISTORY, lambda _, __: "%s")


def led(session: Session, settings: MysqlTarget, epoch: int) -> None:
    """Notes in the history that this process leads from now on."""
    note_lead(
        session.run, session.rows, _SQL, settings.migration, settings.server.user, epoch, settings.reason
    )


def acted(cursor: Any, settings: MysqlTarget, act: str, detail: str) -> None:
    """Somebody did this."""

    def run(statement: str, given: Sequence[Any]) -> None:
        cursor.execute(statement, given)

    def rows(statement: str, given: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor.execute(statement, given)
        return [tuple(row) for row in cursor.fetchall()]

    note(
        run,
        rows,
        _SQL,
        values(settings.migration, act, settings.server.user, reason=settings.reason, detail=detail),
    )
