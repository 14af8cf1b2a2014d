"""A look at the ledger from outside the run: without a lock, without the epoch, changing nothing."""

from __future__ import annotations

import psycopg

from migrator.adapters.targets.postgres.ledger import ledger_of
from migrator.adapters.targets.postgres.refusal import not_reached
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.connections.postgres.refusal import refusal
from migrator.connections.postgres.session import connect
from migrator.model.ledger import Ledger

_EXISTS = "SELECT to_regclass('migrator.ledger') IS NOT NULL"
_READ = "SELECT epoch, segment, format, checkpoint::text FROM migrator.ledger WHERE migration = %s"


def peek(settings: PostgresTarget) -> Ledger | None:
    """The ledger as committed now; None while there is none. Raises ``ConnectionFailed``, ``TargetError``."""
    try:
        with connect(settings.conninfo(), settings.login()) as connection:
            exists = connection.execute(_EXISTS).fetchone()
            if exists is None or not exists[0]:
                return None
            found = connection.execute(_READ, [settings.migration]).fetchone()
    except psycopg.OperationalError as error:
        raise not_reached(settings, str(error), refusal(error)) from error
    if found is None:
        return None
    epoch, segment, number, checkpoint = found
    return ledger_of(settings.migration, int(epoch), int(segment), int(number), checkpoint)
