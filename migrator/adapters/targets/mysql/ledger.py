"""The statements of the ledger's row on MySQL and MariaDB."""

from __future__ import annotations

from migrator.adapters.targets.mysql.reflect import catalog
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.ledger import LedgerTable
from migrator.model.ledger import Ledger
from migrator.schema import MYSQL_LEDGER
from migrator.schema.acts import act_sql
from migrator.schema.dialects import MYSQL_HISTORY

LEDGER = LedgerTable(
    name=MYSQL_LEDGER,
    read=f"SELECT epoch, segment, format, checkpoint FROM {MYSQL_LEDGER} WHERE migration = %s",
    epoch=f"SELECT epoch FROM {MYSQL_LEDGER} WHERE migration = %s",
    create=f"INSERT IGNORE INTO {MYSQL_LEDGER} (migration, epoch, segment, format) VALUES (%s, 0, 0, %s)",
    take=f"UPDATE {MYSQL_LEDGER} SET epoch = %s, updated_at = CURRENT_TIMESTAMP WHERE migration = %s",
    move_on=f"UPDATE {MYSQL_LEDGER} SET segment = %s, position_order = %s, position_token = %s, checkpoint = %s,"
    " format = %s, updated_at = CURRENT_TIMESTAMP WHERE migration = %s",
    mark=f"UPDATE {MYSQL_LEDGER} SET segment = segment + 1 WHERE migration = %s",
    history=act_sql(MYSQL_HISTORY, lambda _, __: "%s"),
)
_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


def peek(settings: MysqlTarget) -> Ledger | None:
    """The ledger as committed now, seen from outside the run: without lock and epoch; None while there is none.

    Raises ``ConnectionFailed``, ``TargetError``.
    """
    with catalog(settings) as session:
        if not session.rows(_EXISTS, [settings.server.database, MYSQL_LEDGER]):
            return None
        found = session.rows(LEDGER.read, [settings.migration])
    return LEDGER.of_row(settings.migration, found[0]) if found else None
