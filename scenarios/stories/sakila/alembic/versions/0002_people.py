"""Persons, where they live, and the stores they deal with.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE address (
    address_id  bigint PRIMARY KEY,
    line1       text NOT NULL,
    line2       text,
    district    text,
    city        text NOT NULL,
    country     text NOT NULL,
    postal_code text,
    phone       text,
    longitude   double precision NOT NULL,
    latitude    double precision NOT NULL,
    updated_at  timestamptz NOT NULL
);
CREATE TABLE person (
    person_id  uuid PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('customer', 'staff')),
    legacy_id  integer NOT NULL,
    first_name text NOT NULL,
    last_name  text NOT NULL,
    email      text,
    address_id bigint NOT NULL REFERENCES address,
    UNIQUE (kind, legacy_id)
);
CREATE TABLE store (
    store_id           smallint PRIMARY KEY,
    manager_id         uuid NOT NULL UNIQUE REFERENCES person,
    address_id         bigint NOT NULL REFERENCES address,
    utc_offset_minutes smallint NOT NULL,
    staff_count        integer NOT NULL,
    item_count         integer NOT NULL,
    updated_at         timestamptz NOT NULL
);
CREATE TABLE customer_account (
    person_id           uuid PRIMARY KEY REFERENCES person,
    store_id            smallint NOT NULL REFERENCES store,
    opened_at           timestamptz,
    payment_count       integer NOT NULL,
    payment_total_cents bigint NOT NULL,
    open_rentals        integer NOT NULL,
    last_rental_at      timestamptz
);
CREATE TABLE customer_archive (
    person_id           uuid PRIMARY KEY REFERENCES person,
    store_id            smallint NOT NULL REFERENCES store,
    opened_at           timestamptz,
    archived_at         timestamptz,
    payment_total_cents bigint NOT NULL
);
CREATE TABLE staff_account (
    person_id     uuid PRIMARY KEY REFERENCES person,
    store_id      smallint NOT NULL REFERENCES store,
    username      text NOT NULL,
    password_sha1 text,
    is_active     boolean NOT NULL,
    updated_at    timestamptz NOT NULL
);
CREATE TABLE staff_photo (
    person_id   uuid PRIMARY KEY REFERENCES person,
    image       bytea NOT NULL,
    image_bytes integer NOT NULL,
    sha256      text NOT NULL,
    media_type  text NOT NULL
)
"""


def upgrade() -> None:
    """Create the tables."""
    for statement in TABLES.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Drop them."""
    for table in (
        "staff_photo",
        "staff_account",
        "customer_archive",
        "customer_account",
        "store",
        "person",
        "address",
    ):
        op.drop_table(table)
