"""Persons and purchases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates both tables."""
    op.create_table(
        "person",
        sa.Column("person_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("email", sa.String(60)),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("born", sa.Date),
    )
    op.create_table(
        "purchase",
        sa.Column("purchase_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("buyer", sa.Integer, nullable=False),
        sa.Column("note", sa.String(80)),
        sa.Column("total", sa.Numeric(12, 2)),
        sa.Column("of_buyer", sa.Integer, nullable=False),
    )
