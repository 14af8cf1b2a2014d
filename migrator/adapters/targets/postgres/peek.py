"""A look at the ledger from outside the run: without a lock, without the epoch, changing nothing."""

from __future__ import annotations

from migrator.adapters.targets.postgres.ledger import LEDGER
from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.model.ledger import Ledger

_EXISTS = "SELECT to_regclass('migrator.ledger') IS NOT NULL"
_READ = "SELECT epoch, segment, format, checkpoint::text FROM migrator.ledger WHERE migration = %s"


def peek(settings: PostgresTarget) -> Ledger | None:
    """The ledger as committed now; None while there is none. Raises ``ConnectionFailed``, ``TargetError``."""
    with catalog(settings) as connection:
        exists = connection.execute(_EXISTS).fetchone()
        if exists is None or not exists[0]:
            return None
        found = connection.execute(_READ, [settings.migration]).fetchone()
    return None if found is None else LEDGER.of_row(settings.migration, found)
