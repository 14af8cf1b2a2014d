"""Loads the data of a story into an old database: a compressed dump, and rows that were made to be awkward."""

from __future__ import annotations

import lzma
from pathlib import Path

from scenarios.database import Database


def load(database: Database, data: Path, *, extra_rows: bool = True) -> None:
    """Makes and fills the old tables in an empty database.

    Args:
        database: the old one; a PostgreSQL database gets the dump for PostgreSQL.
        data: folder of the dump (``old.mysql.sql.xz``, ``old.pg.sql.xz``) and of the rows for it.
        extra_rows: whether to load the awkward rows too.

    Raises ``ConnectionFailed``, or the driver's error if a table exists.
    """
    dialect = "pg" if database.kind == "postgresql" else "mysql"
    run(database, lzma.decompress((data / f"old.{dialect}.sql.xz").read_bytes()).decode())
    if extra_rows:
        add_extra_rows(database, data)


def add_extra_rows(database: Database, data: Path) -> None:
    """Adds the awkward rows to a database filled without them. Raises as :func:`load` does."""
    dialect = "pg" if database.kind == "postgresql" else "mysql"
    run(database, (data / f"extra_rows.{dialect}.sql").read_text(encoding="utf-8"))


def run(database: Database, script: str) -> None:
    """Runs statements of which each ends with ``;`` at a line's end, in one session and transaction."""
    connection = database.connect()
    try:
        cursor = connection.cursor()
        for statement in script.split(";\n"):
            if statement.strip():
                # bytes: psycopg takes no text that a program has read, lest it be put together from values
                cursor.execute(statement.encode() if database.kind == "postgresql" else statement)
        connection.commit()
    finally:
        connection.close()
