"""The present rows of a tracked table on one side, in the history's layout."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from scenarios.database import Connection
from scenarios.workloads.base import Columns, key_text
from verify.history.history import PUT, table_of


def state(connection: Connection, columns: Columns, table: str) -> pa.Table:
    """All rows as the history's STATE, ordered by key columns.

    Args:
        connection: in a transaction of its own, if several tables are to be read as of one moment.
        columns: of the side that the connection leads to.
        table: name of the source table, under which the history has the rows of both sides.
    """
    keys = ", ".join(f'"{name}"' for name in columns.keys)
    value = f'"{columns.value}"' if columns.value else "NULL"
    cursor = connection.cursor()
    try:
        cursor.execute(
            f'SELECT "{columns.session}", "{columns.number}", {value}, {keys} FROM "{columns.table}" ORDER BY {keys}'
        )
        rows: list[tuple[Any, ...]] = [tuple(row) for row in cursor.fetchall()]
    finally:
        cursor.close()
    return table_of(
        "final_source",
        {
            "table": [table] * len(rows),
            "key": [key_text(row[3:]) for row in rows],
            "session": [row[0] for row in rows],
            "number": [row[1] for row in rows],
            "kind": [PUT] * len(rows),
            "value": [row[2] for row in rows],
        },
    )
