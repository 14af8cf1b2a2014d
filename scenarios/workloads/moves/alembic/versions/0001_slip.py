"""The new schema: slips, unique by their primary key alone."""

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
        "slip",
        sa.Column("slip_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("weight", sa.BigInteger, nullable=False),
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("slip")
