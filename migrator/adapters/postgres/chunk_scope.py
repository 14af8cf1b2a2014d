"""What a chunk of a dump request reads: key range, listed keys, or the rows that a predicate holds for.

A predicate is asked of a bounded range of keys only: first the key is found at which ``limit_rows`` rows end, then
the rows up to there are selected. So a predicate that few rows satisfy never makes a chunk scan the table in one go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrator.adapters.postgres.chunk_query import AFTER, HIGH, LOW, ChunkQuery
from migrator.model.chunk import ChunkRequest
from migrator.model.event import Key


@dataclass(frozen=True, slots=True)
class ScopedSelect:
    """The SELECT of a chunk with its keys bound.

    Attributes:
        select: the statement.
        end: where the next chunk begins, if the rows themselves don't tell.
        final: whether it is the last chunk, if the rows themselves don't tell.
    """

    select: str
    end: Key | None = None
    final: bool | None = None


def scoped(cursor: Any, query: ChunkQuery, request: ChunkRequest) -> ScopedSelect:
    """Binds the request's keys in the open transaction. Raises the driver's errors."""

    def bind(statement: str, parameters: tuple[str, ...]) -> None:
        cursor.execute(statement, parameters)
        cursor.fetchall()

    scope, after = request.scope, request.after
    if scope.keys:
        statement, document = query.listing(request.listed())
        bind(statement, (document,))
        select = query.select(False, request.limit_rows, [query.listed()])
        return ScopedSelect(select, request.listed()[-1], request.ends_list())
    if after is not None:
        bind(query.binding(AFTER), query.bound(after))
    conditions = []
    if scope.low is not None and after is None:
        bind(query.binding(LOW), query.bound(scope.low))
        conditions.append(query.compared(">=", LOW))
    if scope.high is not None:
        bind(query.binding(HIGH), query.bound(scope.high))
        conditions.append(query.compared("<=", HIGH))
    if not scope.predicate:
        return ScopedSelect(query.select(after is not None, request.limit_rows, conditions))
    cursor.execute(query.end([query.compared(">", AFTER)] * (after is not None), request.limit_rows))
    found = cursor.fetchone()
    end = None if found is None else query.end_key(found)
    if end is not None:
        bind(query.binding(HIGH), query.bound(end))
        conditions.append(query.compared("<=", HIGH))
    conditions.append(f"({scope.predicate}\n)")
    return ScopedSelect(query.select(after is not None, request.limit_rows, conditions), end, end is None)
