"""The 25 new tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    "text": sa.Text(),
    "number": sa.BigInteger(),
    "amount": sa.Numeric(16, 2),
    "moment": sa.DateTime(),
}
_TABLES = {
    "customer_card": "customer_id, name text, email text, place text, company text",
    "customer_orders": "customer_id, orders number, spent amount, last_at moment",
    "customer_tags": "customer_id, tags text",
    "company_card": "company_id, name text, place text, contacts number, first_contact text",
    "address_use": "address_id, customers number, suppliers number, stores number",
    "employee_load": "employee_id, name text, store text, tickets number",
    "supplier_card": "supplier_id, name text, place text, currency text",
    "product_card": "product_id, title text, category text, gross_price amount",
    "product_tags": "product_id, tags text",
    "product_price": "product_id, title text, list_price amount, currency text, since moment",
    "product_stock": "product_id, quantity number, warehouses text",
    "product_reviews": "product_id, title text, reviews number, stars number, best number",
    "product_source": "product_source_id, product_id number, supplier text, lead_days number, sold_at amount",
    "order_card": "order_id, buyer text, ship_to text, channel text, total text, placed_at moment",
    "order_totals": "order_id, lines number, amount amount, categories number",
    "order_state": "order_id, status text, reason text, since moment",
    "shipment_card": "shipment_id, ship_to text, carrier text, weight number, days number",
    "invoice_card": "invoice_id, sent_to text, amount amount, rest amount, currency text, due_at moment",
    "invoice_balance": "invoice_id, paid amount, due amount, methods text",
    "ticket_card": "ticket_id, subject text, asked_by text, looked_after_by text",
    "ticket_state": "ticket_id, status text, reason text, since moment",
    "ticket_activity": "ticket_id, messages number, characters number, last_at moment",
    "subscription_card": "subscription_id, email text, plan text, monthly amount, currency text",
    "subscription_state": "subscription_id, event text, since moment",
    "store_card": "store_id, name text, place text, employees number",
}
"""The columns of each: its key, then ``name type``."""


def upgrade() -> None:
    """Create them."""
    for table, columns in _TABLES.items():
        key, *others = columns.split(", ")
        op.create_table(
            table,
            sa.Column(key, sa.BigInteger, primary_key=True, autoincrement=False),
            *(sa.Column(name, _TYPES[kind]) for name, kind in map(str.split, others)),
        )


def downgrade() -> None:
    """Drop them."""
    for table in _TABLES:
        op.drop_table(table)
