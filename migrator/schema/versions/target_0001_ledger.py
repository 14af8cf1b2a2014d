"""The ledger on a target: what has been applied, by whom, moved in the transaction that moves the rows."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.dialects.postgresql import JSONB

from migrator.schema.dialects import MYSQL_LEDGER

revision = "target_0001"
down_revision = None
branch_labels = ("target",)
depends_on = None

_SCHEMA = "migrator"


def upgrade() -> None:
    """Makes the table. ``checkpoint`` is the truth; the position's columns are for people and for verification."""
    if op.get_context().dialect.name == "postgresql":
        _create("ledger", sa.Text(), sa.Text(), JSONB(), schema=_SCHEMA)
        return
    # Text, not JSON: MySQL would turn numbers beyond 64 bits, as positions are, into floating point. A crash
    # between the table and its version leaves the table: DDL is no part of a transaction here.
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    keywords = {
        f"{dialect}_{name}": value for dialect in ("mysql", "mariadb") for name, value in options.items()
    }
    _create(MYSQL_LEDGER, sa.String(64), LONGTEXT(), LONGTEXT(), if_not_exists=True, **keywords)


def _create(name: str, key: Any, text: Any, document: Any, **options: Any) -> None:
    op.create_table(
        name,
        sa.Column("migration", key, primary_key=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("segment", sa.BigInteger(), nullable=False),
        sa.Column("position_order", sa.Numeric(39, 0)),
        sa.Column("position_token", text),
        sa.Column("checkpoint", document),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("format", sa.Integer(), nullable=False),
        **options,
    )


def downgrade() -> None:
    """Drops the table: the migration would start anew."""
    if op.get_context().dialect.name == "postgresql":
        op.drop_table("ledger", schema=_SCHEMA)
    else:
        op.drop_table(MYSQL_LEDGER)
