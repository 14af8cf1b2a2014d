"""The record of a cut-over, one row a migration, on both sides."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from migrator.schema.dialects import MYSQL_CUTOVER

revision = "cutover_0001"
down_revision = None
branch_labels = ("cutover",)
depends_on = None

_SCHEMA = "migrator"


def upgrade() -> None:
    """Makes the table."""
    if op.get_context().dialect.name == "postgresql":
        _create("cutover", sa.Text(), schema=_SCHEMA)
        return
    options = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
    keywords = {
        f"{dialect}_{name}": value for dialect in ("mysql", "mariadb") for name, value in options.items()
    }
    _create(
        MYSQL_CUTOVER, LONGTEXT(), if_not_exists=True, **keywords
    )  # a crash before the version leaves the table


def _create(name: str, document: Any, **options: Any) -> None:
    op.create_table(
        name,
        sa.Column("migration", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("document", document, nullable=False),
        **options,
    )


def downgrade() -> None:
    """Drops the table."""
    if op.get_context().dialect.name == "postgresql":
        op.drop_table("cutover", schema=_SCHEMA)
    else:
        op.drop_table(MYSQL_CUTOVER)
