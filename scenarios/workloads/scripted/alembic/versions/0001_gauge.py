"""The new schema: gauges."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the new table."""
    op.create_table(
        "gauge",
        sa.Column("gauge_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("level", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("fee_cents", sa.BigInteger, sa.CheckConstraint("fee_cents >= 0"), nullable=False),
        sa.Column("remark", sa.Text),
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("gauge")
