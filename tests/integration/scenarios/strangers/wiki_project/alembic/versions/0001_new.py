"""Articles, edits and the use of tags."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Creates the three tables."""
    op.create_table(
        "article",
        sa.Column("article_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("namespace", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("redirect", sa.Boolean, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "edit",
        sa.Column("edit_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("article_id", sa.BigInteger, nullable=False),
        sa.Column("author", sa.Text),
        sa.Column("minor", sa.Boolean, nullable=False),
    )
    op.create_table(
        "tag_use",
        sa.Column("tag_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("uses", sa.BigInteger, nullable=False),
        sa.Column("with_parameters", sa.BigInteger, nullable=False),
    )
