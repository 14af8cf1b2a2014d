"""Creates and fills the old personnel database, the same rows on MariaDB, MySQL and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from scenarios.database import Database
from scenarios.stories import data as story_data

DATA = Path(__file__).parent / "data"
TABLES = ("department", "employee", "dept_emp", "dept_manager", "salary", "title")


def load(database: Database, *, extra_rows: bool = True) -> None:
    """Makes the 6 tables and 2 views in an empty database, with or without the awkward rows."""
    story_data.load(database, DATA, extra_rows=extra_rows)
    if database.kind == "postgresql":  # else its log tells only the new values of changed rows
        statements = (f"ALTER TABLE public.{table} REPLICA IDENTITY FULL" for table in TABLES)
        story_data.run(database, ";\n".join(statements))


def add_extra_rows(database: Database) -> None:
    """Adds the awkward rows to a database filled without them."""
    story_data.add_extra_rows(database, DATA)
