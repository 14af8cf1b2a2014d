"""The statements of the ledger's row on MySQL and MariaDB."""

from __future__ import annotations

from migrator.adapters.targets.shared.ledger import LedgerTable
from migrator.schema import MYSQL_LEDGER

LEDGER = LedgerTable(
    name=MYSQL_LEDGER,
    read=f"SELECT epoch, segment, format, checkpoint FROM {MYSQL_LEDGER} WHERE migration = %s",
    epoch=f"SELECT epoch FROM {MYSQL_LEDGER} WHERE migration = %s",
    create=f"INSERT IGNORE INTO {MYSQL_LEDGER} (migration, epoch, segment, format) VALUES (%s, 0, 0, %s)",
    take=f"UPDATE {MYSQL_LEDGER} SET epoch = %s, updated_at = CURRENT_TIMESTAMP WHERE migration = %s",
    move_on=f"UPDATE {MYSQL_LEDGER} SET segment = %s, position_order = %s, position_token = %s, checkpoint = %s,"
    " format = %s, updated_at = CURRENT_TIMESTAMP WHERE migration = %s",
)
