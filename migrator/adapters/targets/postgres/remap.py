"""State of targets, seen from outside the run: which joined ones are in step with the mirror, and which have rows."""

from __future__ import annotations

from typing import Any

import psycopg

from migrator.adapters.targets.postgres.history import acted
from migrator.adapters.targets.postgres.mirror.tables import FILLED
from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.rows.merge import qualified
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.errors import TargetError
from migrator.model.table import TableId

_FOUND = "SELECT to_regclass(%s) IS NOT NULL"


def filled(settings: PostgresTarget) -> list[tuple[str, int]]:
    """The joined targets that were filled, and the segment at which each was. Raises ``ConnectionFailed``,
    ``TargetError``."""
    with catalog(settings) as connection:
        if not _exists(connection):
            return []
        rows = connection.execute(
            f"SELECT target, segment FROM {FILLED} WHERE migration = %s ORDER BY target", [settings.migration]
        ).fetchall()
    return [(str(name), int(segment)) for name, segment in rows]


def holds_rows(settings: PostgresTarget, target: str) -> bool:
    """Tells whether a target table has any row. Raises ``ConnectionFailed``."""
    name = qualified(TableId(settings.server.schema, target))
    with catalog(settings) as connection:
        return connection.execute(f"SELECT FROM {name} LIMIT 1").fetchone() is not None


def forget_filled(settings: PostgresTarget, target: str) -> bool:
    """Makes the run fill a target anew, with its next batch; False if it wasn't filled yet.

    Raises ``ConnectionFailed``, and ``TargetError`` when the role may not.
    """
    with catalog(settings) as connection:
        if not _exists(connection):
            return False
        try:
            with connection.transaction():
                done = connection.execute(
                    f"DELETE FROM {FILLED} WHERE migration = %s AND target = %s", [settings.migration, target]
                )
                acted(connection, settings, "remap", target)
        except psycopg.errors.InsufficientPrivilege as error:
            raise TargetError(
                "the mirror's record of filled targets can't be changed",
                where=FILLED,
                cause=str(error).strip(),
                remedy="run the command with the role that the migration uses",
            ) from error
        return done.rowcount > 0


def _exists(connection: psycopg.Connection[tuple[Any, ...]]) -> bool:
    found = connection.execute(_FOUND, [FILLED]).fetchone()
    return found is not None and bool(found[0])
