"""The new schema: the bench's tables and the pulses."""

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
        "bench_account",
        sa.Column("account_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("branch_id", sa.Integer, nullable=False),
        sa.Column("balance", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "bench_teller",
        sa.Column("teller_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("branch_id", sa.Integer, nullable=False),
        sa.Column("balance", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "bench_branch",
        sa.Column("branch_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("balance", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "bench_posting",
        sa.Column("posting_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("teller_id", sa.Integer, nullable=False),
        sa.Column("account_id", sa.BigInteger, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("booked_at", sa.DateTime, nullable=False),
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
    for name in ("pulse", "bench_posting", "bench_branch", "bench_teller", "bench_account"):
        op.drop_table(name)
