"""The tables of the row-wise part."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "person",
        sa.Column("person_id", UUID, primary_key=True),
        sa.Column("emp_no", sa.BigInteger, nullable=False, unique=True),
        sa.Column("given_name", sa.Text, nullable=False),
        sa.Column("family_name", sa.Text, nullable=False),
        sa.Column("birth_date", sa.Date),
        sa.Column("gender_code", sa.CHAR(1), nullable=False),
    )
    op.create_table(
        "assignment",
        sa.Column("dept_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("person_id", UUID, sa.ForeignKey("person.person_id"), primary_key=True),
        sa.Column("role", sa.Text, primary_key=True),
        sa.Column("valid_from", sa.Date, nullable=False),
        sa.Column("valid_to", sa.Date),
    )
    op.create_table(
        "salary_history",
        sa.Column("person_id", UUID, sa.ForeignKey("person.person_id"), primary_key=True),
        sa.Column("valid_from", sa.Date, primary_key=True),
        sa.Column("valid_to", sa.Date),
        sa.Column("amount_cents", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    for table in ("salary_history", "assignment", "person"):
        op.drop_table(table)
