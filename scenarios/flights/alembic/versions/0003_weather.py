"""Weather observations in metric units at exact instants.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the weather table."""
    op.create_table(
        "weather_observation",
        sa.Column("observation_id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("place_id", sa.Uuid(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("temperature_c", sa.Numeric(5, 2)),
        sa.Column("dew_point_c", sa.Numeric(5, 2)),
        sa.Column("humidity_pct", sa.Numeric(5, 2)),
        sa.Column("wind_direction_deg", sa.SmallInteger()),
        sa.Column("wind_speed_ms", sa.Numeric(6, 2)),
        sa.Column("wind_gust_ms", sa.Numeric(6, 2)),
        sa.Column("is_wind_suspect", sa.Boolean(), nullable=False),
        sa.Column("precipitation_mm", sa.Numeric(6, 2), nullable=False),
        sa.Column("pressure_hpa", sa.Numeric(5, 1)),
        sa.Column("visibility_km", sa.Numeric(6, 3), nullable=False),
        sa.Column("is_freezing", sa.Boolean(), sa.Computed("temperature_c <= 0", persisted=True)),
        sa.ForeignKeyConstraint(
            ["place_id"], ["place.place_id"], name="weather_observation_place_fkey", deferrable=True
        ),
        sa.UniqueConstraint("place_id", "observed_at", name="weather_observation_natural_key"),
        sa.CheckConstraint("humidity_pct BETWEEN 0 AND 100", name="weather_observation_humidity_check"),
        sa.CheckConstraint("wind_direction_deg BETWEEN 0 AND 360", name="weather_observation_wind_check"),
        sa.CheckConstraint("wind_speed_ms < 120", name="weather_observation_wind_speed_check"),
    )


def downgrade() -> None:
    """Drop the weather table."""
    op.drop_table("weather_observation")
