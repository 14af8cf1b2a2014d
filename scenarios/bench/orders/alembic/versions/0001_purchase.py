"""The new schema: one table with proper types and a constraint."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the new table."""
    instant = sa.DateTime(timezone=True).with_variant(mysql.TIMESTAMP(fsp=6), "mysql", "mariadb")
    op.create_table(
        "purchase",
        sa.Column("purchase_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("customer_id", sa.BigInteger, nullable=False),
        sa.Column("item_count", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("amount_cents", sa.BigInteger, nullable=False),
        sa.Column("discount", sa.Double, nullable=False),
        sa.Column("placed_at", instant, nullable=False),
        sa.Column("is_paid", sa.Boolean, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("purchase")
