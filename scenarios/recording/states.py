"""Present rows of tracked tables, by plain SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa

from scenarios.database import Database
from scenarios.recording.growing import GrowingTable
from scenarios.recording.row_version import RowShape, RowVersion
from scenarios.workloads.base import Columns, Tracked
from verify.history.history import PUT


def select(columns: Columns) -> tuple[str, RowShape]:
    """The SELECT of a side's tracked columns without WHERE, and how its rows are read. Double quotes quote
    names."""
    names = [*columns.keys, columns.session, columns.number, *filter(None, [columns.value])]
    listed = ", ".join(map(quoted, names))
    return f"SELECT {listed} FROM {quoted(columns.table)}", RowShape(columns, names)


def quoted(name: str) -> str:
    """An identifier in double quotes, which both engines take from our connections; ``%`` as drivers want it."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def rows_of(database: Database, columns: Columns) -> Iterator[RowVersion]:
    """All rows of a tracked table. Raises ``ConnectionFailed`` and the driver's errors."""
    statement, shape = select(columns)
    connection = database.connect()
    try:
        cursor = connection.cursor()
        cursor.execute(statement)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    finally:
        connection.close()
    return map(shape.version, found)


def final_state(database: Database, tracked: Sequence[Tracked], side: Literal["old", "new"]) -> pa.Table:
    """The history's table of one side's state as it is now."""
    state = GrowingTable("final_source")  # both sides have one layout
    for sides in tracked:
        for row in rows_of(database, sides.old if side == "old" else sides.new):
            state.add((sides.table.name, row.key, row.session, row.number, PUT, row.value))
        state.settle()
    return state.table()
