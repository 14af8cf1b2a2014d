"""Twenty tables alike."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create them."""
    for number in range(1, 21):
        op.create_table(
            f"counter_{number}",
            sa.Column("counter_id", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("reading", sa.BigInteger, nullable=False),
            sa.Column("title", sa.Text),
            sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        )


def downgrade() -> None:
    """Drop them."""
    for number in range(1, 21):
        op.drop_table(f"counter_{number}")
