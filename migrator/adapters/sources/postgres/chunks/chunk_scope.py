"""The rows that a chunk reads: a range of keys; of a dump request also listed keys, or rows a predicate holds for.

A predicate is asked of a bounded range of keys only: the key at which ``limit_rows`` rows end is found first
(``ChunkRequest.ahead``). So a predicate that few rows satisfy never makes a chunk scan the table in one go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from migrator.adapters.sources.postgres.chunks.chunk_query import AFTER, HIGH, LOW, ChunkQuery
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Key


def scoped(cursor: Any, query: ChunkQuery, request: ChunkRequest) -> str:
    """Binds the request's keys in the open transaction; the SELECT of its rows. Raises the driver's errors."""
    if request.scope.keys:
        query = query.keyed(request.scope.columns)
        statement, document = query.listing(request.listed())
        _bind(cursor, statement, (document,))
        return query.select(request.limit_rows, [query.listed()])
    conditions = _range(cursor, query, request)
    if request.scope.predicate:
        conditions.append(f"({request.scope.predicate}\n)")
    return query.select(request.limit_rows, conditions)


def bounded(cursor: Any, query: ChunkQuery, request: ChunkRequest) -> ChunkRequest:
    """See ``ChunkReader.bounded``; in the open transaction. Raises the driver's errors."""
    if request.end is None:
        request = replace(request, end=_found(cursor, query, query.last(_range(cursor, query, request))))
    if not request.ahead:
        return request
    until = _found(cursor, query, query.nth(_range(cursor, query, request), request.boundary_rows()))
    return replace(request, until=None if until == request.end else until)


def _range(cursor: Any, query: ChunkQuery, request: ChunkRequest) -> list[str]:
    """Binds the bounds of the request's keys; the conditions that a row lies between them."""
    scope, after, top = request.scope, request.after, request.top()
    conditions = []
    for operator, name, key in (
        (">", AFTER, after),
        (">=", LOW, scope.low if after is None else None),
        ("<=", HIGH, scope.high if top is None else top),
    ):
        if key is not None:
            _bind(cursor, query.binding(name), query.bound(key))
            conditions.append(query.compared(operator, name))
    return conditions


def _found(cursor: Any, query: ChunkQuery, statement: str) -> Key | None:
    cursor.execute(statement)
    found = cursor.fetchone()
    return None if found is None else query.key_of(found)


def _bind(cursor: Any, statement: str, parameters: tuple[str, ...]) -> None:
    cursor.execute(statement, parameters)
    cursor.fetchall()
