"""Items, rentals, payments and sales.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE inventory_item (
    inventory_id bigint PRIMARY KEY,
    film_id      bigint NOT NULL REFERENCES film,
    store_id     smallint NOT NULL REFERENCES store,
    times_rented integer NOT NULL,
    is_out       boolean NOT NULL
);
CREATE TABLE rental (
    inventory_id     bigint NOT NULL REFERENCES inventory_item,
    rented_at        timestamptz NOT NULL,
    person_id        uuid NOT NULL REFERENCES person,
    legacy_rental_id bigint NOT NULL UNIQUE,
    handled_by       uuid NOT NULL REFERENCES person,
    returned_at      timestamptz,
    due_at           timestamptz NOT NULL,
    days_late        integer,
    paid_cents       bigint NOT NULL,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (inventory_id, rented_at, person_id)
);
CREATE TABLE payment (
    payment_id   bigint PRIMARY KEY,
    person_id    uuid NOT NULL REFERENCES person,
    handled_by   uuid NOT NULL REFERENCES person,
    rental_id    bigint NOT NULL REFERENCES rental (legacy_rental_id),
    amount_cents integer NOT NULL,
    paid_at      timestamptz NOT NULL
);
CREATE TABLE payment_unallocated (
    payment_id   bigint PRIMARY KEY,
    person_id    uuid NOT NULL REFERENCES person,
    handled_by   uuid NOT NULL REFERENCES person,
    amount_cents integer NOT NULL,
    paid_at      timestamptz NOT NULL
);
CREATE TABLE store_month_sales (
    store_id      smallint NOT NULL REFERENCES store,
    month         date NOT NULL,
    payment_count integer NOT NULL,
    amount_cents  bigint NOT NULL,
    PRIMARY KEY (store_id, month)
)
"""


def upgrade() -> None:
    """Create the tables."""
    for statement in TABLES.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Drop them."""
    for table in ("store_month_sales", "payment_unallocated", "payment", "rental", "inventory_item"):
        op.drop_table(table)
