"""Statements on a PyMySQL connection: quoted identifiers and bound values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from migrator.model.table import TableId


def quote(name: str) -> str:
    """An identifier, quoted."""
    return "`" + name.replace("`", "``") + "`"


def quote_table(table: TableId) -> str:
    """A table's full name, quoted."""
    return f"{quote(table.schema)}.{quote(table.name)}"


def query(connection: Any, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """All rows of one query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, tuple(parameters) or None)
        return list(cursor.fetchall())


def variable(connection: Any, name: str) -> str:
    """A global variable of the server, ON and OFF as 1 and 0; empty when the server has none of that name."""
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE %s", (name.replace("_", "\\_"),))
    value = str(rows[0][1]) if rows else ""
    return {"ON": "1", "OFF": "0"}.get(value.upper(), value)


def account(user: str) -> str:
    """The login from any host: from which one it comes, the configuration doesn't tell."""
    return f"{quote(user)}@'%'"
