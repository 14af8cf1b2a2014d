"""The history on a target: every act of an operator or a leader, who did it, where, when and why."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from migrator.schema.dialects import MYSQL_HISTORY

revision = "target_0002"
down_revision = "target_0001"
branch_labels = None
depends_on = None

_SCHEMA = "migrator"


def upgrade() -> None:
    """Makes the table. Its lengths are those that ``migrator.schema.acts`` cuts to."""
    if op.get_context().dialect.name == "postgresql":
        _create("history", schema=_SCHEMA)
        return
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    keywords = {
        f"{dialect}_{name}": value for dialect in ("mysql", "mariadb") for name, value in options.items()
    }
    _create(MYSQL_HISTORY, if_not_exists=True, **keywords)  # a crash before the version leaves the table


def _create(name: str, **options: Any) -> None:
    op.create_table(
        name,
        sa.Column("id", sa.BigInteger(), sa.Identity(), primary_key=True, autoincrement=True),
        sa.Column("migration", sa.String(64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("act", sa.String(32), nullable=False),
        sa.Column("epoch", sa.BigInteger()),
        sa.Column("login", sa.String(255), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("os_user", sa.String(255), nullable=False),
        sa.Column("process", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False),
        sa.Column("detail", sa.String(2000), nullable=False),
        **options,
    )


def downgrade() -> None:
    """Drops the table: what was done is forgotten."""
    if op.get_context().dialect.name == "postgresql":
        op.drop_table("history", schema=_SCHEMA)
    else:
        op.drop_table(MYSQL_HISTORY)
