"""The new schema: counters and hits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the new tables."""
    op.create_table(
        "counter",
        sa.Column("counter_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
    )
    op.create_table(
        "hit",
        sa.Column("hit_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("counter_id", sa.BigInteger, nullable=False, index=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("hit")
    op.drop_table("counter")
