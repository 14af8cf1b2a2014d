"""The SELECT of a chunk, and what a dump request makes of it: key range, listed keys, or a predicate.

A predicate is asked of a bounded range of keys only: first the key is found at which ``limit_rows`` rows end, then
the rows up to there are selected. So a predicate that few rows satisfy never makes a chunk scan the table in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.binlog.keyset import chunk_select, compared, end_select, listed
from migrator.binlog.packet_buffer import BufferedConnection
from migrator.binlog.result_set import ResultSet, read_columns
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Key, Value
from migrator.model.table import TableSchema


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows of a chunk.

    Attributes:
        result: the rows.
        end: where the next chunk begins, if the rows themselves don't tell.
        final: whether it is the last chunk, if the rows themselves don't tell.
    """

    result: ResultSet
    end: Key | None = None
    final: bool | None = None


def select_chunk(
    connection: BufferedConnection, schema: TableSchema, index: str | None, request: ChunkRequest
) -> Selected:
    """Reads the rows in the connection's present read view.

    Raises PyMySQL's errors, and ``SourceError`` for a key that isn't one of this table.
    """
    scope, after, escape = request.scope, request.after, connection.escape
    if scope.keys:
        conditions = [listed(schema, request.listed(), escape)]
        sql = chunk_select(schema, index, None, request.limit_rows, escape, conditions)
        return Selected(read_columns(connection, sql), request.listed()[-1], request.ends_list())
    conditions, end, final = [], None, None
    if scope.low is not None and after is None:
        conditions.append(compared(schema, ">=", scope.low, escape))
    if scope.high is not None:
        conditions.append(compared(schema, "<=", scope.high, escape))
    if scope.predicate:
        begun = [compared(schema, ">", after, escape)] if after is not None else []
        keys = read_columns(connection, end_select(schema, index, begun, request.limit_rows)).columns
        final = not keys[0]
        if not final:
            end = key_of_last(schema, keys)
            conditions.append(compared(schema, "<=", end, escape))
        conditions.append(f"({scope.predicate}\n)")
    sql = chunk_select(schema, index, after, request.limit_rows, escape, conditions)
    return Selected(read_columns(connection, sql), end, final)


def key_of_last(schema: TableSchema, columns: Sequence[Sequence[bytes | None]]) -> Key:
    """The last row's key, from the key's columns in key order."""
    values: list[Value] = []
    for place, column in zip(schema.key_indexes(), columns, strict=True):
        value = column[-1]
        values.append(value if value is None or schema.columns[place].type == "binary" else value.decode())
    return tuple(values)
