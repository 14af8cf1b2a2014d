"""The ledger on a target: what has been applied, by whom, moved in the transaction that moves the rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "target_0001"
down_revision = None
branch_labels = ("target",)
depends_on = None

_SCHEMA = "migrator"


def upgrade() -> None:
    """Makes the table. ``checkpoint`` is the truth; the position's columns are for people and for verification."""
    op.create_table(
        "ledger",
        sa.Column("migration", sa.Text(), primary_key=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("segment", sa.BigInteger(), nullable=False),
        sa.Column("position_order", sa.Numeric(39, 0)),
        sa.Column("position_token", sa.Text()),
        sa.Column("checkpoint", JSONB()),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("format", sa.Integer(), nullable=False),
        schema=_SCHEMA,
    )


def downgrade() -> None:
    """Drops the table: the migration would start anew."""
    op.drop_table("ledger", schema=_SCHEMA)
