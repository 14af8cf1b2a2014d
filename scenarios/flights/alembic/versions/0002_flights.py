"""Flights and what became of each: departure, arrival, delay, diversion, cancellation.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the flight tables."""
    op.create_table(
        "flight",
        sa.Column("flight_id", sa.Uuid(), primary_key=True),
        sa.Column("carrier_id", sa.Uuid(), nullable=False),
        sa.Column("flight_number", sa.Integer(), nullable=False),
        sa.Column("origin_id", sa.Uuid(), nullable=False),
        sa.Column("destination_code", sa.String(3), nullable=False),
        sa.Column("service_date", sa.Date(), nullable=False),
        sa.Column("departs_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("arrives_local", sa.DateTime(), nullable=False),
        sa.Column("distance_km", sa.Numeric(9, 3), nullable=False),
        sa.Column("tail_number", sa.String(6)),
        sa.Column("status", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["carrier_id"], ["carrier.carrier_id"], name="flight_carrier_fkey", deferrable=True
        ),
        sa.ForeignKeyConstraint(
            ["origin_id"], ["place.place_id"], name="flight_origin_fkey", deferrable=True
        ),
        sa.UniqueConstraint(
            "service_date", "carrier_id", "flight_number", "origin_id", name="flight_natural_key"
        ),
        sa.CheckConstraint("status IN ('flown', 'diverted', 'cancelled')", name="flight_status_check"),
        sa.CheckConstraint("distance_km > 0", name="flight_distance_check"),
    )
    _outcome(
        "departure",
        sa.Column("departed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("delay_min", sa.SmallInteger()),
        sa.Column("on_time", sa.Boolean(), sa.Computed("delay_min <= 15", persisted=True)),
    )
    _outcome(
        "arrival",
        sa.Column("landed_local", sa.DateTime(), nullable=False),
        sa.Column("delay_min", sa.SmallInteger(), nullable=False),
        sa.Column("air_time_min", sa.SmallInteger()),
        sa.CheckConstraint("air_time_min > 0", name="arrival_air_time_check"),
    )
    _outcome(
        "diversion",
        sa.Column("departed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("landed_clock", sa.String(5)),
        sa.CheckConstraint("landed_clock ~ '^[0-2][0-9]:[0-5][0-9]$'", name="diversion_landed_clock_check"),
    )
    _outcome(
        "cancellation",
        sa.Column("planned_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("aircraft_known", sa.Boolean(), nullable=False),
    )
    _delay()


def _outcome(table: str, *columns: sa.Column[object] | sa.CheckConstraint) -> None:
    """A table with at most one row for each flight."""
    op.create_table(
        table,
        sa.Column("flight_id", sa.Uuid(), primary_key=True),
        *columns,
        sa.ForeignKeyConstraint(
            ["flight_id"], ["flight.flight_id"], name=f"{table}_flight_fkey", deferrable=True
        ),
    )


def _delay() -> None:
    severity = "CASE WHEN minutes >= 180 THEN 'severe' WHEN minutes >= 60 THEN 'long' ELSE 'short' END"
    op.create_table(
        "delay",
        sa.Column("flight_id", sa.Uuid(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("minutes", sa.SmallInteger(), nullable=False),
        sa.Column("severity", sa.Text(), sa.Computed(severity, persisted=True)),
        sa.PrimaryKeyConstraint("flight_id", "phase"),
        sa.ForeignKeyConstraint(
            ["flight_id"], ["flight.flight_id"], name="delay_flight_fkey", deferrable=True
        ),
        sa.CheckConstraint("phase IN ('departure', 'arrival')", name="delay_phase_check"),
        sa.CheckConstraint("minutes > 15", name="delay_minutes_check"),
    )


def downgrade() -> None:
    """Drop the flight tables."""
    for table in ("delay", "cancellation", "diversion", "arrival", "departure", "flight"):
        op.drop_table(table)
