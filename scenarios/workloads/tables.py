"""Makes the old tables of a workload and their first rows, by one text that both engines take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.database import Connection, Database


@dataclass(frozen=True, slots=True)
class OldTable:
    """A source table.

    Attributes:
        name: unquoted.
        columns: what stands between the parentheses of its CREATE TABLE.
        fill: the values of its first rows in the columns' order, as SQL expressions over ``n`` = 1, 2, ...
        rows: how many of them.
    """

    name: str
    columns: str
    fill: str = ""
    rows: int = 0


def create_tables(database: Database, tables: Sequence[OldTable]) -> None:
    """Makes and fills all tables, committed; before images are complete on PostgreSQL (REPLICA IDENTITY FULL).

    Raises ConnectionFailed, or the driver's error if a table exists.
    """
    connection = database.connect()
    try:
        for table in tables:
            for statement in _statements(table, database.kind):
                run(connection, statement)
        connection.commit()
    finally:
        connection.close()


def run(connection: Connection, statement: str) -> None:
    """Run one statement without parameters; a percent sign in it is one."""
    cursor = connection.cursor()
    try:
        cursor.execute(statement)
    finally:
        cursor.close()


def series(first: int, last: int, kind: str) -> str:
    """Writes what stands behind FROM for one row with ``n`` for each number from first to last, made inside the
    server."""
    if kind == "postgresql":
        return f"generate_series({first}, {last}) AS series(n)"
    if kind == "mysql":  # its connections allow as many recursions
        numbers = f"SELECT CAST({first:d} AS SIGNED) UNION ALL SELECT n + 1 FROM numbers WHERE n < {last:d}"
        return f"(WITH RECURSIVE numbers (n) AS ({numbers}) SELECT n FROM numbers) AS series"
    return f"(SELECT seq AS n FROM seq_{first}_to_{last}) AS series"


def _statements(table: OldTable, kind: str) -> list[str]:
    name = f'"{table.name}"'
    if kind == "postgresql":
        statements = [
            f"CREATE TABLE {name} ({table.columns})",
            f"ALTER TABLE {name} REPLICA IDENTITY FULL",
        ]
    else:
        # Binary collation: text keys then order and compare as PostgreSQL's do.
        statements = [
            f"CREATE TABLE {name} ({table.columns}) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
        ]
    if table.rows:
        statements.append(f"INSERT INTO {name} SELECT {table.fill} FROM {series(1, table.rows, kind)}")
    return statements
