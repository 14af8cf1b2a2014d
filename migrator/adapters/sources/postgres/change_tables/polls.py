"""The SQL of a poll: what became visible between two snapshots, in the order of its sequence numbers.

One poll is one transaction to whoever reads it. Its rows are those of all transactions that the newer
snapshot shows and the older one doesn't, so no commit can fall between two polls, however late it comes after
its sequence numbers; and after it the reader has exactly the state that the newer snapshot shows.

The rows of transactions that ended never change. So parts of a poll are read by statements of their own, with both
snapshots written out; nothing is held open in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.postgres.change_tables.layout import (
    AFTER,
    BEFORE,
    COMMAND,
    DELETE,
    INSERT,
    OPERATION,
    PLACE,
    TRANSACTION,
    TRUNCATE,
    change_table,
    identifier,
)
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.adapters.sources.postgres.reflection import ReflectedTable
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import SourceError
from migrator.model.event import Operation, Row, RowChange
from migrator.model.table import TableId

_T, _P, _O, _C = (identifier(name) for name in (TRANSACTION, PLACE, OPERATION, COMMAND))
_FIRST_FETCH, _LEAST_FETCH, _MOST_FETCH = 64, 8, 4096
_FETCH_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class Fresh:
    """A table with new rows: which (as SQL), how many, and the sequence numbers they lie between."""

    table: ReflectedTable
    condition: str
    rows: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Part:
    """Changes of a part of a poll, the last sequence number among them, and whether the poll ends there."""

    changes: tuple[RowChange, ...]
    high: int
    last: bool


def between(older: SnapshotWitness, newer: SnapshotWitness) -> str:
    """The condition that a transaction is shown by the newer snapshot and not by the older; only numbers in it."""

    def listed(ids: frozenset[int]) -> str:
        return f"'{{{','.join(map(str, sorted(ids)))}}}'::pg_catalog.xid8[]"

    late = f"{_T} = ANY ({listed(older.xip)})"
    unseen = f"({late} OR {_T} >= '{older.xmax}'::pg_catalog.xid8)"
    return f"{unseen} AND {_T} < '{newer.xmax}'::pg_catalog.xid8 AND {_T} <> ALL ({listed(newer.xip)})"


def fresh(connection: Any, tables: Sequence[tuple[ReflectedTable, str]]) -> list[Fresh]:
    """The tables with new rows, each given with the condition that tells them.

    Raises SourceError for a TRUNCATE, and where the order of changes can't be told.
    """
    found = []
    for table, condition in tables:
        name = quoted(change_table(table.schema.id))
        rows, low, high, truncated, overlaps = connection.execute(
            f"SELECT count(*), min({_P}), max({_P}), coalesce(bool_or({_O} = {TRUNCATE}), false),"
            f" coalesce(bool_or({_C} < before), false) FROM (SELECT {_P}, {_O}, {_C},"
            f" lag({_C}) OVER (PARTITION BY {_T} ORDER BY {_P}) AS before FROM {name} WHERE {condition}) AS new_row"
        ).fetchone()
        if truncated:
            raise _truncated(table.schema.id)
        if overlaps:
            _check_overlaps(connection, table, condition)
        if rows:
            found.append(Fresh(table, condition, rows, low, high))
    return found


def _check_overlaps(connection: Any, table: ReflectedTable, condition: str) -> None:
    """Stops where a statement's row is captured after a statement within it captured the same row.

    Rows are captured when their statement has changed all of them. A trigger that fires for the first of them
    may run another statement, which is captured at once:

    1. a statement changes rows 1 and 2, and row 1 is captured;
    2. another trigger fires for row 1 and changes row 2 again: captured;
    3. row 2 of the statement in 1 is captured, after what came later.

    Its statement began before the other one, which no later change of the row can say of itself.
    """
    names = ", ".join(identifier(name) for name in table.schema.key)
    row = connection.execute(
        f"SELECT ROW({names})::text FROM (SELECT {names}, {_C} AS command, lag({_C}) OVER (PARTITION BY {_T}, {names}"
        f" ORDER BY {_P}, {_O}) AS before FROM {quoted(change_table(table.schema.id))} WHERE {condition}) AS new_row"
        " WHERE command < before LIMIT 1"
    ).fetchone()
    if row is not None:
        raise SourceError(
            f"the order of two changes of one row of {table.schema.id} can't be told",
            where=f"{table.schema.id}, key {row[0]}",
            cause="a statement changed the row, and while its triggers ran, one of them changed the row once more",
            remedy="let the trigger leave rows of the statement alone that it runs for, or use the log"
            ' (source.log = "server"); then start the migration anew (docs/how-to/start-anew.md)',
        )


def read_part(connection: Any, found: Sequence[Fresh], after: int, part_rows: int, part_bytes: int) -> Part:
    """The next changes of a poll, after a sequence number; at least one unless there are none."""
    if not found:
        return Part((), after, last=True)
    high = max(rows.high for rows in found)
    low = max(after, min(rows.low for rows in found) - 1)
    selects = [
        _select(n, rows.table, f"{rows.condition} AND {_P} > {low} AND {_P} <= {high}")
        for n, rows in enumerate(found)
    ]
    connection.execute(
        f"DECLARE poll NO SCROLL CURSOR FOR SELECT * FROM ({' UNION ALL '.join(selects)}) AS new_row ORDER BY 2, 3"
    )
    tables = [(rows.table.schema.id, _binary(rows.table)) for rows in found]
    changes: list[RowChange] = []
    size, place = 0, after
    for seen, change, change_bytes in _changes(connection, tables):
        place = seen
        changes.append(change)
        size += change_bytes
        if len(changes) >= part_rows or size >= part_bytes:
            break
    connection.execute("CLOSE poll")
    return Part(tuple(changes), place, last=place == high)


def _select(number: int, table: ReflectedTable, condition: str) -> str:
    """A table's new rows as text, the same text that the log and chunks have."""
    values = ", ".join(reflected.printed(identifier(reflected.column.name)) for reflected in table.columns)
    name = quoted(change_table(table.schema.id))
    return f"SELECT {number}, {_P}, {_O}, ARRAY[{values}]::text[] FROM {name} WHERE {condition}"


def _binary(table: ReflectedTable) -> tuple[int, ...]:
    return tuple(place for place, column in enumerate(table.schema.columns) if column.type == "binary")


def _changes(
    connection: Any, tables: Sequence[tuple[TableId, tuple[int, ...]]]
) -> Iterator[tuple[int, RowChange, int]]:
    """``(sequence number, change, bytes)``; rows before and after an update become one change."""
    before: Row | None = None
    before_bytes = 0
    for number, place, operation, values in _rows(connection):
        table, binary = tables[number]
        size = sum(len(value) for value in values if value is not None)
        row = _row(values, binary)
        if operation == BEFORE:
            before, before_bytes = row, size
        elif operation == AFTER:
            yield place, RowChange(table, Operation.UPDATE, before, row), before_bytes + size
        elif operation == INSERT:
            yield place, RowChange(table, Operation.INSERT, None, row), size
        elif operation == DELETE:
            yield place, RowChange(table, Operation.DELETE, row, None), size
        else:
            raise SourceError(
                f"a row of {change_table(table)} has the unknown operation {operation}", where=str(place)
            )


def _rows(connection: Any) -> Iterator[tuple[int, int, int, list[str | None]]]:
    """Rows of the open cursor; few at a time where they are large."""
    most = _FIRST_FETCH
    while rows := connection.execute(f"FETCH {most} FROM poll").fetchall():
        yield from rows
        size = sum(len(value) for row in rows for value in row[3] if value is not None)
        most = max(_LEAST_FETCH, min(_MOST_FETCH, most * 4, _FETCH_BYTES * len(rows) // (size + 1)))


def _row(values: list[str | None], binary: tuple[int, ...]) -> Row:
    row: list[Any] = values
    for place in binary:
        if row[place] is not None:
            row[place] = bytes.fromhex(row[place][2:])  # bytea_output is pinned to hex: \x...
    return tuple(row)


def _truncated(table: TableId) -> SourceError:
    return SourceError(
        f"{table} was emptied by TRUNCATE, which isn't carried to the target",
        where=str(table),
        cause="a TRUNCATE has no row images",
        remedy="start the migration anew (docs/how-to/start-anew.md); use DELETE instead of TRUNCATE while it runs",
    )
