"""A look at the ledger from outside the run: without a lock, without the epoch, changing nothing."""

from __future__ import annotations

from migrator.adapters.targets.mysql.ledger import LEDGER
from migrator.adapters.targets.mysql.reflect import catalog
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.model.ledger import Ledger
from migrator.schema import MYSQL_LEDGER

_EXISTS = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"


def peek(settings: MysqlTarget) -> Ledger | None:
    """The ledger as committed now; None while there is none. Raises ``ConnectionFailed``, ``TargetError``."""
    with catalog(settings) as session:
        if not session.rows(_EXISTS, [settings.database, MYSQL_LEDGER]):
            return None
        found = session.rows(LEDGER.read, [settings.migration])
    return LEDGER.of_row(settings.migration, found[0]) if found else None
