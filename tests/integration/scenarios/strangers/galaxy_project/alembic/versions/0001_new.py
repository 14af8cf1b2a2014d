"""Accounts, projects and files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the three tables."""
    op.create_table(
        "account",
        sa.Column("account_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("username", sa.Text, nullable=False),
        sa.Column("disk_usage", sa.Numeric(15, 0), nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
    )
    op.create_table(
        "project",
        sa.Column("project_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(255)),
        sa.Column("owner", sa.String(255)),
        sa.Column("jobs", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "file",
        sa.Column("file_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("tool", sa.String(255)),
        sa.Column("bytes", sa.Numeric(15, 0)),
    )
