"""The scope of a chunk: a range of keys, and of a dump request also listed keys, or rows a predicate holds for.

A predicate is asked of a bounded range of keys only: the key at which ``limit_rows`` rows end is found first
(``ChunkRequest.ahead``). So a predicate that few rows satisfy never makes a chunk scan the table in one go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrator.adapters.sources.binlog.chunks.bulk_rows import BulkResult, read_batches
from migrator.adapters.sources.binlog.keyset import (
    Quote,
    chunk_select,
    compared,
    last_key,
    listed,
    nth_key,
)
from migrator.connections.mysql.packet_buffer import BufferedConnection
from migrator.connections.mysql.result_set import read_columns
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Key, Value
from migrator.model.table import TableSchema


def select_chunk(
    connection: BufferedConnection, schema: TableSchema, index: str | None, request: ChunkRequest
) -> BulkResult:
    """Reads the rows in the connection's present read view.

    Raises PyMySQL's errors, and ``SourceError`` for a key that isn't one of this table.
    """
    if request.scope.columns:
        schema, index = replace(schema, key=request.scope.columns), None
    if request.scope.keys:
        conditions = [listed(schema, request.listed(), connection.escape)]
    else:
        conditions = _range(schema, request, connection.escape)
    if request.scope.predicate:
        conditions.append(f"({request.scope.predicate}\n)")
    return read_batches(connection, chunk_select(schema, index, request.limit_rows, conditions))


def bounded(
    connection: BufferedConnection, schema: TableSchema, index: str | None, request: ChunkRequest
) -> ChunkRequest:
    """See ``ChunkReader.bounded``. Raises what ``select_chunk`` raises."""

    def found(sql: str) -> Key | None:
        columns = read_columns(connection, sql).columns
        return key_of(schema, [column[-1] for column in columns]) if columns[0] else None

    if request.end is None:
        sql = last_key(schema, index, _range(schema, request, connection.escape))
        request = replace(request, end=found(sql))
    if not request.ahead:
        return request
    conditions = _range(schema, request, connection.escape)
    until = found(nth_key(schema, index, conditions, request.boundary_rows()))
    return replace(request, until=None if until == request.end else until)


def _range(schema: TableSchema, request: ChunkRequest, quote_text: Quote) -> list[str]:
    """The conditions that a row's key lies between the request's bounds."""
    scope, after, top = request.scope, request.after, request.top()
    bounds = (
        (">", after),
        (">=", scope.low if after is None else None),
        ("<=", scope.high if top is None else top),
    )
    return [compared(schema, operator, key, quote_text) for operator, key in bounds if key is not None]


def key_of(schema: TableSchema, raw_values: Sequence[bytes | None]) -> Key:
    """A row's key, from its values in key order as the server's bytes."""
    values: list[Value] = []
    for place, value in zip(schema.key_indexes(), raw_values, strict=True):
        values.append(value if value is None or schema.columns[place].type == "binary" else value.decode())
    return tuple(values)
