"""The statements of the ledger's row on PostgreSQL."""

from __future__ import annotations

from migrator.adapters.targets.shared.ledger import LedgerTable

_NAME = "migrator.ledger"

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
)
