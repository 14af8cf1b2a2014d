"""Creates and fills the old rental shop, the same rows on MariaDB and MySQL."""

from __future__ import annotations

from pathlib import Path

from scenarios.database import Database
from scenarios.stories import data as story_data

DATA = Path(__file__).parent / "data"


def load(database: Database, *, extra_rows: bool = True) -> None:
    """Makes the 16 tables and 7 views in an empty database, with or without the awkward rows."""
    story_data.load(database, DATA, extra_rows=extra_rows)


def add_extra_rows(database: Database) -> None:
    """Adds the awkward rows to a shop filled without them."""
    story_data.add_extra_rows(database, DATA)
