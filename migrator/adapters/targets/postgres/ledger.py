"""The statements of the ledger's row on PostgreSQL."""

from __future__ import annotations

from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.shared.ledger import LedgerTable
from migrator.connections.postgres.marks import APPLIED
from migrator.model.ledger import Ledger
from migrator.schema.acts import act_sql

_NAME = "migrator.ledger"
HISTORY = "migrator.history"

# Text, not bind types: the driver binds Python numbers as bigint, and positions may be larger.
LEDGER = LedgerTable(
    name=_NAME,
    read=f"SELECT epoch, segment, format, checkpoint::text FROM {_NAME} WHERE migration = $1::text",
    epoch=f"SELECT epoch FROM {_NAME} WHERE migration = $1::text",
    create=f"INSERT INTO {_NAME} (migration, epoch, segment, format) VALUES ($1::text, 0, 0, $2::int)"
    " ON CONFLICT (migration) DO NOTHING",
    take=f"UPDATE {_NAME} SET epoch = $1::bigint, updated_at = now() WHERE migration = $2::text",
    move_on=f"UPDATE {_NAME} SET segment = $1::bigint, position_order = $2::text::numeric,"
    " position_token = $3::text, checkpoint = $4::text::jsonb, format = $5::bigint, updated_at = now()"
    " WHERE migration = $6::text",
    mark=f"SELECT pg_catalog.pg_logical_emit_message(true, '{APPLIED}', $1::text)",
    history=act_sql(HISTORY, lambda number, kind: f"${number}::{kind}"),
)
_EXISTS = "SELECT to_regclass('migrator.ledger') IS NOT NULL"
_READ = "SELECT epoch, segment, format, checkpoint::text FROM migrator.ledger WHERE migration = %s"


def peek(settings: PostgresTarget) -> Ledger | None:
    """The ledger as committed now, seen from outside the run: without lock and epoch; None while there is none.

    Raises ``ConnectionFailed``, ``TargetError``.
    """
    with catalog(settings) as connection:
        exists = connection.execute(_EXISTS).fetchone()
        if exists is None or not exists[0]:
            return None
        found = connection.execute(_READ, [settings.migration]).fetchone()
    return None if found is None else LEDGER.of_row(settings.migration, found)
