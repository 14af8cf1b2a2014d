"""Creates and fills the old database, the same rows on PostgreSQL, MariaDB and MySQL."""

from __future__ import annotations

import tempfile
from pathlib import Path

from psycopg import sql

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.flights.dataset import TABLES, load_text, old_rows

FOLDER = Path(__file__).parent


def create(database: Database) -> None:
    """Create the five old tables in an existing, empty database.

    Raises ConnectionFailed, or the driver's error if a table exists.
    """
    if database.kind == "postgresql":
        with database.postgres() as session:
            session.execute((FOLDER / "old_postgresql.sql").read_bytes())
        return
    connection = database.connect()
    try:
        cursor = connection.cursor()
        for statement in (FOLDER / "old_mariadb.sql").read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                cursor.execute(statement)
    finally:
        connection.close()


def load(database: Database, *, every: int = 1) -> dict[str, int]:
    """Fill the tables made by :func:`create`; returns the number of rows by table.

    Args:
        database: the old database.
        every: keep only every n-th flight and weather row, for quick tests; the small tables stay complete.
    """
    counts = {}
    for table in TABLES:
        rows = old_rows(table)
        if table in ("flights", "weather"):
            rows = rows.iloc[::every]
        _load_table(database, table, list(rows.columns), load_text(rows))
        counts[table] = len(rows)
    return counts


def _load_table(database: Database, table: str, columns: list[str], text: bytes) -> None:
    if database.kind == "postgresql":
        copy_text(database, table, columns, text)
    else:
        _load_data(database, table, columns, text)


def copy_text(database: Database, table: str, columns: list[str], text: bytes) -> None:
    """COPY rows into a PostgreSQL table and bring the planner's statistics up to date."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    with database.postgres() as connection:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
        with connection.cursor().copy(statement) as copy:
            copy.write(text)
        connection.execute(sql.SQL("ANALYZE {}").format(sql.Identifier(table)))


def _load_data(database: Database, table: str, columns: list[str], text: bytes) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    with tempfile.NamedTemporaryFile(prefix=f"{table}-", suffix=".tsv") as file:
        file.write(text)
        file.flush()
        connection = database.connect(local_files=True)
        try:
            cursor = connection.cursor()
            statement = f'LOAD DATA LOCAL INFILE %s INTO TABLE "{table}" CHARACTER SET utf8mb4 ({names})'
            cursor.execute(statement, (file.name,))
            connection.commit()
            expected_rows = text.count(b"\n")
            if cursor.rowcount != expected_rows:  # LOCAL turns errors into warnings and skips the row
                raise MigratorError(
                    f"{database.kind} did not load every row",
                    where=table,
                    cause=f"{cursor.rowcount} of {expected_rows} rows were stored",
                    remedy="load into empty tables made by create()",
                )
        finally:
            connection.close()
