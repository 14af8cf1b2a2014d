"""Whole rows in the log of the new database: a way back reads them there.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_READ = (
    "carrier", "place", "aircraft", "aircraft_engine", "directory_entry", "flight", "departure", "arrival",
    "diversion", "weather_observation",
)  # fmt: skip


def upgrade() -> None:
    """Log whole before images of what ``reverse.py`` reads."""
    for table in _READ:
        op.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")


def downgrade() -> None:
    """Log keys alone again."""
    for table in _READ:
        op.execute(f"ALTER TABLE {table} REPLICA IDENTITY DEFAULT")
