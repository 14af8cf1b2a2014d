"""The new schema: depots with their areas and shelves, buyers, sales."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SALE = ("depot_id", "area_no", "sale_no")


def _table(name: str, key: tuple[str, ...], *rest: sa.Column[Any] | sa.Constraint) -> None:
    op.create_table(
        name,
        *(sa.Column(column, sa.Integer, nullable=False) for column in key),
        *rest,
        sa.Column("client", sa.Integer, nullable=False),
        sa.Column("client_no", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint(*key),
    )


def _integer(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)


def _big(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text, nullable=False)


def upgrade() -> None:
    """Create the new tables."""
    _table("depot", ("depot_id",), _text("title"), _big("turnover"), _integer("tax_points"))
    _table("area", ("depot_id", "area_no"), _text("title"), _big("turnover"), _integer("next_sale_no"))
    _table(
        "buyer",
        ("depot_id", "area_no", "buyer_no"),
        _text("last_name"),
        _big("balance"),
        sa.Column("has_credit", sa.Boolean, nullable=False),
        _integer("payments"),
    )
    _table("shelf", ("depot_id", "item_id"), _big("pieces"), _integer("last_sale_no"))
    _table("sale", _SALE, _integer("buyer_no"), sa.Column("carrier", sa.Integer), _big("line_count"))
    _table(
        "sale_line",
        (*_SALE, "line_no"),
        _integer("item_id"),
        _big("pieces"),
        _big("cents"),
        sa.Column("is_delivered", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(_SALE, [f"sale.{name}" for name in _SALE]),
    )
    _table("open_sale", _SALE, sa.ForeignKeyConstraint(_SALE, [f"sale.{name}" for name in _SALE]))


def downgrade() -> None:
    """Drop them."""
    for name in ("open_sale", "sale_line", "sale", "shelf", "buyer", "area", "depot"):
        op.drop_table(name)
