"""The new schema: accounts of both kinds, and postings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the new tables."""
    for name in ("current_account", "deposit_account"):
        op.create_table(
            name,
            sa.Column("account_id", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("holder", sa.Text, nullable=False),
            sa.Column("cents", sa.BigInteger, sa.CheckConstraint("cents >= 0"), nullable=False),
            sa.Column("client", sa.Integer, nullable=False),
            sa.Column("client_no", sa.Integer, nullable=False),
        )
    op.create_table(
        "posting",
        sa.Column("posting_id", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("from_account", sa.BigInteger, nullable=False),
        sa.Column("to_account", sa.BigInteger, nullable=False),
        sa.Column("cents", sa.BigInteger, nullable=False),
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop them."""
    for name in ("posting", "deposit_account", "current_account"):
        op.drop_table(name)
