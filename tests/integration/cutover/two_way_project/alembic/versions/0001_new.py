"""A customer becomes a person and a contact; an order a purchase."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the tables."""
    for statement in (
        "CREATE TABLE person (person_id integer PRIMARY KEY, full_name varchar(80) NOT NULL)",
        "CREATE TABLE contact (person_id integer PRIMARY KEY, email varchar(120))",
        "CREATE TABLE purchase (purchase_id integer PRIMARY KEY, person_id integer NOT NULL,"
        " amount numeric(12,2) NOT NULL, is_paid boolean NOT NULL)",
        "CREATE TABLE spending (person_id integer PRIMARY KEY, full_name varchar(80), purchases bigint NOT NULL)",
    ):
        op.execute(statement)


def downgrade() -> None:
    """Drops them."""
    for table in ("person", "contact", "purchase", "spending"):
        op.drop_table(table)
