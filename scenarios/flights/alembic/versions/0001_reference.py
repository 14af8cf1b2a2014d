"""Carriers, places, aircraft, and the directory that finds them by name.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the reference tables."""
    op.create_table(
        "carrier",
        sa.Column("carrier_id", sa.Uuid(), primary_key=True),
        sa.Column("code", sa.String(2), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("legal_form", sa.Text()),
        sa.UniqueConstraint("code", name="carrier_code_key"),
        sa.UniqueConstraint("name", name="carrier_name_key", deferrable=True),
        sa.CheckConstraint("code ~ '^[0-9A-Z]{2}$'", name="carrier_code_check"),
    )
    op.create_table(
        "place",
        sa.Column("place_id", sa.Uuid(), primary_key=True),
        sa.Column("code", sa.String(3), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("latitude", sa.Numeric(10, 7), nullable=False),
        sa.Column("longitude", sa.Numeric(10, 7), nullable=False),
        sa.Column("elevation_m", sa.Numeric(7, 2), nullable=False),
        sa.Column("utc_offset_h", sa.SmallInteger(), nullable=False),
        sa.Column("observes_dst", sa.Boolean()),
        sa.Column("time_zone", sa.Text()),
        sa.UniqueConstraint("code", name="place_code_key"),
        sa.CheckConstraint("latitude BETWEEN -90 AND 90", name="place_latitude_check"),
        sa.CheckConstraint("longitude BETWEEN -180 AND 180", name="place_longitude_check"),
    )
    _aircraft()
    op.create_table(
        "directory_entry",
        sa.Column("entry_id", sa.Uuid(), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.UniqueConstraint("kind", "code", name="directory_entry_kind_code_key"),
        sa.CheckConstraint("kind IN ('carrier', 'place', 'aircraft')", name="directory_entry_kind_check"),
    )


def _aircraft() -> None:
    op.create_table(
        "aircraft",
        sa.Column("aircraft_id", sa.Uuid(), primary_key=True),
        sa.Column("tail_number", sa.String(6), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("manufacturer", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), sa.Computed("manufacturer || ' ' || model", persisted=True)),
        sa.Column("built_year", sa.SmallInteger()),
        sa.Column("seats", sa.SmallInteger(), nullable=False),
        sa.Column("cruise_speed_kmh", sa.Numeric(7, 2)),
        sa.UniqueConstraint("tail_number", name="aircraft_tail_number_key"),
        sa.CheckConstraint("kind IN ('aeroplane', 'rotorcraft')", name="aircraft_kind_check"),
        sa.CheckConstraint("built_year BETWEEN 1903 AND 2100", name="aircraft_built_year_check"),
    )
    op.create_table(
        "aircraft_engine",
        sa.Column("aircraft_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column("design", sa.Text(), nullable=False),
        sa.Column("is_turbine", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("aircraft_id", "position"),
        sa.ForeignKeyConstraint(
            ["aircraft_id"], ["aircraft.aircraft_id"], name="aircraft_engine_aircraft_fkey", deferrable=True
        ),
        sa.CheckConstraint("position >= 1", name="aircraft_engine_position_check"),
    )


def downgrade() -> None:
    """Drop the reference tables."""
    for table in ("directory_entry", "aircraft_engine", "aircraft", "place", "carrier"):
        op.drop_table(table)
