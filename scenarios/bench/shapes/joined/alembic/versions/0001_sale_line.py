"""The joined table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create it."""
    op.create_table(
        "sale_line",
        sa.Column("line_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("buyer", sa.Text, nullable=False),
        sa.Column("article", sa.Text, nullable=False),
        sa.Column("quantity", sa.Integer, nullable=False),
        sa.Column("amount", sa.Numeric(14, 2), nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("sale_line")
