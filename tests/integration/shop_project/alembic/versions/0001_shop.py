"""Joined, merged and aggregated tables."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the tables."""
    for statement in (
        "CREATE TABLE label (category_id integer PRIMARY KEY, name text)",
        "CREATE TABLE order_summary (order_id integer PRIMARY KEY, customer_name text, line_count bigint NOT NULL,"
        " total numeric(20,2) NOT NULL, products text)",
        "CREATE TABLE article (name varchar(60) PRIMARY KEY, products bigint NOT NULL, sold bigint NOT NULL)",
        "CREATE TABLE buyer (customer_id integer PRIMARY KEY, orders bigint NOT NULL, last_order_id integer)",
        "CREATE TABLE pick (order_id integer, place integer, product_id integer, quantity integer NOT NULL,"
        " PRIMARY KEY (order_id, place))",
        "CREATE TABLE referral (customer_id integer PRIMARY KEY, referrer text, referred bigint NOT NULL)",
        "CREATE TABLE party (party_id varchar(60) PRIMARY KEY, name text, members bigint NOT NULL)",
        "CREATE TABLE sales (category varchar(60), price_band integer, sold_lines bigint NOT NULL,"
        " quantity bigint NOT NULL, PRIMARY KEY (category, price_band))",
        "CREATE TABLE circle (customer_id integer PRIMARY KEY, place integer NOT NULL)",
        "CREATE TABLE dispatch (product_id integer, order_id integer, line_no integer, customer_name text,"
        " PRIMARY KEY (product_id, order_id, line_no))",
        "CREATE TABLE band (product_id integer PRIMARY KEY, products bigint NOT NULL)",
        "CREATE TABLE namesake (category_id integer PRIMARY KEY, quantity bigint NOT NULL)",
        "CREATE TABLE fan (category_id integer PRIMARY KEY, customers bigint NOT NULL)",
    ):
        op.execute(statement)


def downgrade() -> None:
    """Drops them."""
    for table in (
        "label",
        "order_summary",
        "article",
        "buyer",
        "pick",
        "referral",
        "party",
        "sales",
        "dispatch",
        "circle",
        "band",
        "namesake",
        "fan",
    ):
        op.execute(f"DROP TABLE {table}")
