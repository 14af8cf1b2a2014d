"""The new schema: samples and pulses."""

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
        "sample",
        sa.Column("sample_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("bucket", sa.Integer, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("padding", sa.Text, nullable=False),
    )
    op.create_table(
        "pulse",
        sa.Column("pulse_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("pulse")
    op.drop_table("sample")
