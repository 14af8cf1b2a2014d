"""State of targets, seen from outside the run: which joined ones are in step with the mirror, and which have rows."""

from __future__ import annotations

import pymysql

from migrator.adapters.targets.mysql.history import acted
from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_database
from migrator.adapters.targets.mysql.reflect import catalog
from migrator.adapters.targets.mysql.refusal import Refusal, explained, not_reached
from migrator.adapters.targets.mysql.rows.merge import qualified
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.errors import TargetError
from migrator.model.table import TableId

_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'filled'"


def filled(settings: MysqlTarget) -> list[tuple[str, int]]:
    """The joined targets that were filled, and the segment at which each was. Raises ``ConnectionFailed``."""
    table = control_table(settings.server.database, "filled")
    with catalog(settings) as session:
        if not session.rows(_EXISTS, [mirror_database(settings.server.database)]):
            return []
        rows = session.rows(
            f"SELECT target, segment FROM {table} WHERE migration = %s ORDER BY target", [settings.migration]
        )
    return [(str(name), int(segment)) for name, segment in rows]


def holds_rows(settings: MysqlTarget, target: str) -> bool:
    """Tells whether a target table has any row. Raises ``ConnectionFailed``."""
    with catalog(settings) as session:
        return bool(
            session.rows(f"SELECT 1 FROM {qualified(TableId(settings.server.database, target))} LIMIT 1")
        )


def forget_filled(settings: MysqlTarget, target: str) -> bool:
    """Makes the run fill a target anew, with its next batch; False if it wasn't filled yet.

    Raises ``ConnectionFailed``, and ``TargetError`` when the user may not.
    """
    if target not in dict(filled(settings)):
        return False
    table = control_table(settings.server.database, "filled")
    try:
        connection = settings.connected(settings.session())
    except (pymysql.err.MySQLError, OSError) as error:
        raise not_reached(settings, error) from None
    try:
        with connection.cursor() as cursor:
            changed = cursor.execute(
                f"DELETE FROM {table} WHERE migration = %s AND target = %s", (settings.migration, target)
            )
            acted(cursor, settings, "remap", target)
        connection.commit()
    except (pymysql.err.MySQLError, OSError) as error:
        found = explained(error)
        if not isinstance(found, Refusal):
            raise not_reached(settings, error) from None
        raise TargetError(
            "the mirror's record of filled targets can't be changed",
            where=table,
            cause=found.cause(),
            remedy="run the command with the user that the migration uses",
        ) from None
    finally:
        connection.close()
    return bool(changed > 0)
