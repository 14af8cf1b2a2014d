"""All rows of a table as values that its server takes back: texts on PostgreSQL, texts and bytes elsewhere."""

from __future__ import annotations

from datetime import timedelta

from scenarios.chaos.writes.changes import quoted
from scenarios.database import Database
from scenarios.faults.session import query
from scenarios.rehearsal.tables import Table

MOST = 2_000
"""Rows of a table that clients know at most."""


def plain_rows(database: Database, table: Table, most: int | None = None) -> list[dict[str, object]]:
    """The rows by column, ordered by key; columns that the server computes are left out.

    ``most``: how many at most. Raises ``MigratorError``.
    """
    names = table.written()
    postgres = database.kind == "postgresql"
    chosen = ", ".join(f"{quoted(name)}::text" if postgres else quoted(name) for name in names)
    order = f" ORDER BY {', '.join(map(quoted, table.key))}" if table.key else ""
    limit = f" LIMIT {most:d}" if most is not None else ""
    # The statement has no parameters, so that a percent sign is one.
    statement = f"SELECT {chosen} FROM {quoted(table.name)}{order}{limit}".replace("%%", "%")
    found = query(database, statement)
    return [dict(zip(names, map(plain, row), strict=True)) for row in found]


def plain(value: object) -> str | bytes | None:
    """A driver's value as its server takes it back: text, bytes, or None."""
    if isinstance(value, timedelta):  # a time of MySQL and MariaDB, whose hours go beyond a day
        whole = abs(value)
        hours, seconds = divmod(whole.days * 86_400 + whole.seconds, 3600)
        minutes, seconds = divmod(seconds, 60)
        sign = "-" if value < timedelta() else ""
        return f"{sign}{hours:02d}:{minutes:02d}:{seconds:02d}.{whole.microseconds:06d}"
    return value if value is None or isinstance(value, bytes) else str(value)
