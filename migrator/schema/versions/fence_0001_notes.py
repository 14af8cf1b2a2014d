"""The notes of fences: what was there before a side was fenced off, one row a migration, side and database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from migrator.schema.dialects import MYSQL_FENCE

revision = "fence_0001"
down_revision = None
branch_labels = ("fence",)
depends_on = None

_SCHEMA = "migrator"


def upgrade() -> None:
    """Makes the table: in our schema, or beside the tables of a target that has none of its own."""
    context = op.get_context()
    if context.dialect.name == "postgresql":
        _create("fence", sa.Text(), schema=_SCHEMA)
        return
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    keywords: dict[str, Any] = {
        f"{dialect}_{name}": value for dialect in ("mysql", "mariadb") for name, value in options.items()
    }
    keywords["if_not_exists"] = True  # a crash before the version leaves the table
    if context.version_table_schema is None:
        _create(MYSQL_FENCE, LONGTEXT(), **keywords)
    else:
        _create("fence", LONGTEXT(), schema=_SCHEMA, **keywords)


def _create(name: str, text: Any, **options: Any) -> None:
    op.create_table(
        name,
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("migration", sa.String(64), nullable=False),
        sa.Column("side", sa.String(8), nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.Column("up_at", sa.String(32)),
        sa.Column("document", text, nullable=False),
        **options,
    )


def downgrade() -> None:
    """Drops the table: what was there before is forgotten."""
    context = op.get_context()
    if context.dialect.name == "postgresql" or context.version_table_schema is not None:
        op.drop_table("fence", schema=_SCHEMA)
    else:
        op.drop_table(MYSQL_FENCE)
