"""The watermark row on a source: one row per migration, overwritten before and after a chunk read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "source_0001"
down_revision = None
branch_labels = ("source",)
depends_on = None

_SCHEMA = "migrator"


def upgrade() -> None:
    """Makes the table; on PostgreSQL with its whole row in the log, as for every captured table."""
    op.create_table(
        "watermark",
        sa.Column("migration", sa.String(64), primary_key=True),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        schema=_SCHEMA,
    )
    if op.get_context().dialect.name == "postgresql":
        op.execute(sa.text("ALTER TABLE migrator.watermark REPLICA IDENTITY FULL"))


def downgrade() -> None:
    """Drops the table."""
    op.drop_table("watermark", schema=_SCHEMA)
